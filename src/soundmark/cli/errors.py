"""The error with which a command ends."""


class Refused(Exception):  # noqa: N818 - named for what is said to the reader
    """The command was refused or failed; the message is the one line that says so, and holds no secret."""
