"""The pages, one folder for each area."""
