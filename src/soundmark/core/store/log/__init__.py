"""SQL of the transparency log, which belongs to no tenant."""
