"""The transparency log without I/O: entries, trees, tiles, notes, checkpoints and proofs, in the formats of C2SP."""
