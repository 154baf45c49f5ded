"""The base of the groups of operations."""

from soundmark_sdk.client._async.sender import AsyncSender


class AsyncGroup:
    """A group of operations that send their calls through one sender."""

    def __init__(self, sender: AsyncSender) -> None:
        self._sender = sender
