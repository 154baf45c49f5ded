"""The private contract: what Core and its private components say to each other, written once for both sides."""
