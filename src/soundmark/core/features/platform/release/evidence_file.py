"""Reading the evidence file, which a release pipeline writes and replaces while Core runs."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

from soundmark.core.domain.platform.release import (
    EVIDENCE_BYTES_MAX,
    EvidenceFinding,
    EvidenceRefused,
    ReleaseEvidence,
    parse_evidence,
)

_ATTEMPTS_MAX: Final = 3
_ABSENT: Final = {errno.ENOENT, errno.ENOTDIR}
# Without O_NONBLOCK, opening a named pipe would wait for its writer.
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_evidence_file(path: Path | None) -> ReleaseEvidence:
    """Return the evidence in the file at `path`. It blocks, so call it in a thread.

    A symbolic link is followed, because orchestrators replace mounted files by turning a link. It opens no way to
    secrets: whatever is read leaves this function in the shape of evidence or not at all.

    Raises: EvidenceRefused.
    """
    if path is None:
        raise EvidenceRefused("not_configured")
    try:
        return parse_evidence(_read_settled(path))
    except OSError as error:
        finding: EvidenceFinding = "missing" if error.errno in _ABSENT else "unreadable"
        raise EvidenceRefused(finding) from None


def _read_settled(path: Path) -> bytes:
    """Read a file that may be written to meanwhile; renaming another file onto it needs no second attempt."""
    for _ in range(_ATTEMPTS_MAX):
        content = _read_once(path)
        if content is not None:
            return content
    raise EvidenceRefused("changing")


def _read_once(path: Path) -> bytes | None:
    """Return the content of a regular file; None if it changed while it was read.

    The opened file is judged, not its name, which could mean another file by then.
    """
    handle = os.open(path, _FLAGS)
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            raise EvidenceRefused("not_a_file")
        if before.st_size > EVIDENCE_BYTES_MAX:
            raise EvidenceRefused("too_large")
        content = os.read(handle, EVIDENCE_BYTES_MAX + 1)
        after = os.fstat(handle)
    finally:
        os.close(handle)
    is_settled = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    return content if is_settled and len(content) == after.st_size else None
