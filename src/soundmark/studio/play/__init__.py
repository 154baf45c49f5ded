"""The playout agent of a venue: `soundmark play`.

`playout` decides what sounds, without I/O; `agent` runs it against the service, the file of its state and an output.
"""
