"""Audio: turns a broadcast frame into the sound that carries it. No database, no secret but its credential."""
