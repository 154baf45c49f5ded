"""From a request to its caller and scope: the declaration of operations, and its enforcement."""
