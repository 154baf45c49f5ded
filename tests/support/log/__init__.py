"""What tests of the transparency log share."""
