"""Mechanisms without product words: nothing here knows what a Code is."""
