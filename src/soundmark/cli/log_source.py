"""Reading a transparency log over HTTP, as an auditor does: nothing is believed that is not verified."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import typer
from soundmark_sdk.http_exchange import check_base_url, parse_retry_after
from soundmark_sdk.network_failures import explain_network_failure

from soundmark.cli import Refused
from soundmark.cli.intents import printable
from soundmark.core.domain.log.auditing import LogAudit, LogFault, require_tile
from soundmark.core.domain.log.checkpoint import Checkpoint, count_cosignatures, verify_checkpoint
from soundmark.core.domain.log.entry import LogEntry
from soundmark.core.domain.log.state import LOG_PATH
from soundmark.core.domain.log.tiles import TileRequest, format_path, read_bundle
from soundmark.core.domain.log.tree import TILE_WIDTH, tile_width
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.signed_notes import COSIGNATURE, NotANote, VerifierKey, parse_verifier_key
from soundmark.operating_system.files import write_private

_TIMEOUT_S: Final = 30.0
_BYTES_MAX: Final = 32 * 1024 * 1024  # A bundle of 256 entries of 64 KiB has less.
_PAUSE_MIN_S: Final = 1.0
_PAUSE_MAX_S: Final = 60.0
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class LogTrust:
    """Whom an auditor believes: the log's keys, and how many of which witnesses."""

    keys: tuple[VerifierKey, ...]
    witnesses: tuple[VerifierKey, ...] = ()
    quorum: int = 0


@dataclass(frozen=True, slots=True)
class KnownLog:
    """What an auditor keeps: the last checkpoint, verbatim, and the keys that were believed then."""

    checkpoint: str
    vkeys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Served:
    status: int
    content: bytes
    pause_s: float


class LogSource:
    """A log at the URL of a service."""

    def __init__(self, base_url: str, client: httpx2.Client) -> None:
        self._base_url: Final = base_url
        self._prefix: Final = base_url + LOG_PATH
        self._client: Final = client

    def read_vkeys(self) -> tuple[str, ...]:
        """Return the keys that the log itself names.

        Raises: Refused.
        """
        try:
            return tuple(str(text) for text in json.loads(self._get(""))["vkeys"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Refused(f"{printable(self._prefix)} does not describe a log") from None

    def read_proof(self, digest: str) -> bytes | None:
        """Return the proof of an entry, unverified; None if the log has no such entry. Where it must, it waits.

        Raises: Refused.
        """
        while True:
            answer = self._send(f"/proofs/{digest}")
            if answer.status == httpx2.codes.NOT_FOUND:
                return None
            if answer.status != httpx2.codes.TOO_MANY_REQUESTS:
                return self._content(answer, f"/proofs/{digest}")
            time.sleep(answer.pause_s)

    def read_checkpoint(self, trust: LogTrust) -> tuple[Checkpoint, str]:
        """Return the newest checkpoint, verified, and its text.

        Raises: Refused; LogFault.
        """
        data = self._get("/checkpoint")
        try:
            signed = verify_checkpoint(data, trust.keys)
        except NotANote as error:
            raise LogFault(f"the checkpoint {error}") from None
        count = count_cosignatures(signed.note, trust.witnesses)
        if count < trust.quorum:
            raise LogFault(f"{count} of the given witnesses have cosigned the checkpoint; {trust.quorum} must")
        return signed.checkpoint, str(signed.note)

    def read_all(
        self, checkpoint: Checkpoint, known: Checkpoint | None, progress: Progress
    ) -> Iterator[tuple[int, list[LogEntry]]]:
        """Yield every entry with the positions of the first of each bundle, and verify every hash on the way.

        Raises: Refused; LogFault.
        """
        audit = LogAudit(checkpoint, known)
        while (first := audit.size) < checkpoint.size:
            number, width = first // TILE_WIDTH, min(TILE_WIDTH, checkpoint.size - first)
            entries = self._read_bundle(number, width)
            read, changed = audit.add(entries)
            for (level, place), hashes in changed.items():
                # A tile that is not full yet is compared when it is as large as the checkpoint says.
                if len(hashes) == tile_width(checkpoint.size, level, place) * 32:
                    served = self._get("/tile/" + format_path(TileRequest(level, place, len(hashes) // 32)))
                    require_tile((level, place), hashes, served)
            yield first, read
            progress(audit.size, checkpoint.size)
        audit.finish()

    def _read_bundle(self, number: int, width: int) -> list[bytes]:
        try:
            entries = read_bundle(self._get("/tile/" + format_path(TileRequest(None, number, width))))
        except ValueError as error:
            raise LogFault(f"bundle {number} of entries: {error}") from None
        if len(entries) != width:
            raise LogFault(f"bundle {number} has {len(entries)} entries in place of {width}")
        return entries

    def _get(self, path: str) -> bytes:
        answer = self._send(path)
        if answer.status == httpx2.codes.NOT_FOUND:
            raise LogFault(f"the log does not have {path or 'a description'}")
        return self._content(answer, path)

    def _send(self, path: str) -> _Served:
        try:
            with self._client.stream("GET", self._prefix + path) as response:
                is_ok = response.status_code == httpx2.codes.OK
                content = self._read(response, path) if is_ok else b""
                return _Served(response.status_code, content, _read_pause_s(response))
        except httpx2.HTTPError as error:
            reason = explain_network_failure(self._base_url, error)
            raise Refused(f"{printable(reason)} Start it, or name another with --base-url.") from None

    def _read(self, response: httpx2.Response, path: str) -> bytes:
        """Return the body as it was sent. A log that sends without end does not fill the auditor's memory."""
        content = bytearray()
        for chunk in response.iter_raw():
            content += chunk
            if len(content) > _BYTES_MAX:
                raise Refused(f"{printable(self._prefix)}{path} sends more than {_BYTES_MAX // 2**20} MiB")
        return bytes(content)

    def _content(self, answer: _Served, path: str) -> bytes:
        if answer.status != httpx2.codes.OK:
            raise Refused(f"{printable(self._prefix)}{path} answers {answer.status}")
        return answer.content


def _read_pause_s(response: httpx2.Response) -> float:
    stated_s = parse_retry_after(response.headers.get("retry-after"), SystemClock().now())
    return min(max(stated_s or 0.0, _PAUSE_MIN_S), _PAUSE_MAX_S)


@contextmanager
def open_log(base_url: str) -> Iterator[LogSource]:
    """Yield the log of a service. What it serves is public and verified, so plain http is good enough anywhere.

    Raises: Refused.
    """
    try:
        base_url = check_base_url(base_url, allow_insecure_http=True)
    except ValueError as error:
        raise Refused(f"{printable(base_url)}: {error}") from None
    plain = {"Accept-Encoding": "identity"}
    with httpx2.Client(headers=plain, timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False) as client:
        yield LogSource(base_url, client)


def find_trust(
    source: LogSource,
    known: KnownLog | None,
    *,
    vkeys: Sequence[str],
    witnesses: Sequence[str],
    quorum: int | None,
) -> tuple[LogTrust, bool]:
    """Return whom to believe, and whether the log's keys are its own claim, which nobody has confirmed.

    Raises: typer.BadParameter for a malformed key in an option, and for a quorum of more witnesses than options name.
        Refused for a malformed key in the state file or from the log.
    """
    needed = len(witnesses) if quorum is None else quorum
    if needed > len(witnesses):
        raise typer.BadParameter(f"a quorum of {needed} needs as many witnesses; give each with --witness")
    keys = [read_vkey(text) for text in vkeys]
    cosigners = tuple(read_vkey(text, types=(COSIGNATURE,)) for text in witnesses)
    if not keys:
        keys = [_parse(text) for text in (source.read_vkeys() if known is None else known.vkeys)]
    return LogTrust(tuple(keys), cosigners, needed), not vkeys and known is None


def read_vkey(text: str, *, types: tuple[int, ...] = (1,)) -> VerifierKey:
    """Return the key that an option gives.

    Raises: typer.BadParameter.
    """
    try:
        return parse_verifier_key(text, types=types)
    except NotANote as error:
        raise typer.BadParameter(f"{printable(text)} {error}") from None


def read_known(file: Path | None) -> KnownLog | None:
    """Return what an earlier run kept; None without a file.

    Raises: Refused for a file that is not of this command.
    """
    if file is None or not file.exists():
        return None
    try:
        kept: Any = json.loads(file.read_text("utf-8"))
        return KnownLog(str(kept["checkpoint"]), tuple(str(text) for text in kept["vkeys"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise Refused(f"{file} is not what `soundmark log verify --state` keeps") from None


def read_others(file: Path | None) -> dict[str, Any]:
    """Return everything that an earlier run kept; nothing without a file, or if `read_known` refuses it."""
    if file is None or not file.exists():
        return {}
    try:
        kept = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return kept if isinstance(kept, dict) else {}


def keep_known(file: Path | None, known: KnownLog, **others: Any) -> None:
    """Write what the next run needs. What another command keeps in the same file stays, but for `others`.

    Raises: Refused.
    """
    if file is None:
        return
    content = {**read_others(file), "checkpoint": known.checkpoint, "vkeys": list(known.vkeys), **others}
    try:
        write_private(file, json.dumps(content, indent=2) + "\n")
    except OSError as error:
        raise Refused(f"{file} cannot be written: {error.strerror}") from None


def _parse(text: str) -> VerifierKey:
    try:
        return parse_verifier_key(text)
    except NotANote as error:
        raise Refused(f"{printable(text)} {error}") from None
