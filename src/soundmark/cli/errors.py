"""The error with which a command ends."""


class Refused(Exception):
    """The command was refused or failed; the message is the one line that says so, and holds no secret."""
