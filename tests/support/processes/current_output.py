"""Standard output as it is now, for logs of threads: pytest replaces it for each phase of a test."""

import sys


class CurrentOutput:
    """A file that writes to whatever `sys.stdout` is at the moment.

    `print` without a file does the same, but in Python 3.11 it borrows the reference, and crashes if another thread
    replaces `sys.stdout` meanwhile (python/cpython#130163).
    """

    def write(self, text: str) -> int:
        """Write the text and return its length."""
        return sys.stdout.write(text)

    def flush(self) -> None:
        """Write what is buffered."""
        sys.stdout.flush()
