"""Codes from issuance to resolution."""
