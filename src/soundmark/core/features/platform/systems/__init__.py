"""Tests of the systems that the platform settings configure."""
