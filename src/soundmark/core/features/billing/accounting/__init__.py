"""Draft invoices in the accounting system, and the third parties that they go to."""
