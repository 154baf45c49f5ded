"""The page that shows the parts of pages."""
