"""Why a component does not start."""


class CannotStart(Exception):  # noqa: N818 - named for what is said to the operator
    """Something is missing that an operator can mend; the message is the one line that says so, and holds no secret."""
