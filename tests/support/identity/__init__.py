"""Identity providers and the tokens that they issue, and some that they never issued."""
