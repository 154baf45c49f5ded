"""Core's features, one package for each subject. They do not import each other."""
