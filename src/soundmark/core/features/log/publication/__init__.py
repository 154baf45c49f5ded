"""How the log is served: checkpoints, tiles and proofs, to everybody."""
