"""What Core does, one package for a subject; they do not know each other."""
