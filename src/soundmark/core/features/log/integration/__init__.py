"""How the log grows: what waits enters the tree, a checkpoint is signed, and witnesses cosign it."""
