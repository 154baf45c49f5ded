"""Contracts for measuring, which platform administrators grant without a payment."""
