"""Tables of Codes, broadcasts, campaigns, issuance receipts and signing keys."""
