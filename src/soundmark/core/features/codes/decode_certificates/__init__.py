"""Decode certificates: what somebody measured of a Code in a finished programme, signed by Core."""
