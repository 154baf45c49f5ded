"""Texts with a shape: identifiers, base64url, timestamps, cursors."""
