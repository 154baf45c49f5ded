"""What Audience does: each feature with its routes, commands and shapes."""
