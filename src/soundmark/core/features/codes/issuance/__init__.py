"""Issuing Codes, and recovering the response of an issuance."""
