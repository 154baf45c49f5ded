"""Keep libmpg123 from writing to the terminal, which libsndfile gives no way to forbid."""

import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_STDERR: Final = 2
# What libmpg123 writes: notes, warnings, and messages with the place in its source.
_NOTE: Final = re.compile(rb"(?:Note|Warning): .*|\[(?:src/)?libmpg123/.*|\s*", re.DOTALL)
_turn: Final = threading.Lock()


@contextmanager
def drop_decoder_notes() -> Iterator[None]:
    """Drop what libmpg123 writes meanwhile. What anyone else writes to standard error arrives afterwards."""
    with _turn, tempfile.TemporaryFile() as written:
        try:
            terminal = os.dup(_STDERR)
        except OSError:  # A service may run without one; then there is nothing to keep clean.
            yield
            return
        os.dup2(written.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(terminal, _STDERR)
            os.close(terminal)
            written.seek(0)
            for line in written:
                if not _NOTE.fullmatch(line):
                    os.write(_STDERR, line)
