# Generated from `../_async/group.py` by `make_blocking.py`: change that file, then run this program.
"""The base of the groups of operations."""

from soundmark_sdk.client._sync.sender import Sender


class Group:
    """A group of operations that send their calls through one sender."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
