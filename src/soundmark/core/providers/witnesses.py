"""Calls of witnesses, who cosign a log's checkpoints if they extend what they have seen.

Source: C2SP, tlog-witness.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from soundmark.core.domain.log.checkpoint import is_cosigned
from soundmark.core.domain.log.state import Witness
from soundmark.kit.crypto.signed_notes import NotANote, Note, NoteSignature, encode, parse_note, parse_signatures
from soundmark.kit.http.outbound.client import OutboundClient, OutboundRequest, RequestLost

ANSWER_TIMEOUT_S: Final = 5.0  # Contract, section 11.
_BYTES_MAX: Final = 64 * 1024
_SIZE: Final = re.compile(rb"(0|[1-9][0-9]{0,18})\n")
_TEXT: Final = {"content-type": "text/plain; charset=utf-8", "accept": "text/plain"}


class WitnessAbsent(Exception):
    """The witness gave no answer that counts. The message says why, and is safe to log."""


class WitnessIsElsewhere(Exception):
    """The witness has cosigned a tree of another size; nothing proves what it says."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size: Final = size


class WitnessSawAnother(Exception):
    """The witness says that the checkpoint does not extend what it has seen; it may be wrong."""


class WitnessClient:
    """A client of every witness that is configured."""

    def __init__(self, *, extra_ca_file: Path | None) -> None:
        """Raises: OSError if the file cannot be read or holds no certificate."""
        self._client: Final = OutboundClient(bytes_max=_BYTES_MAX, extra_ca_file=extra_ca_file)

    async def add_checkpoint(
        self, witness: Witness, checkpoint: str, *, old_size: int, proof: Sequence[bytes]
    ) -> NoteSignature:
        """Return the witness's cosignature of a checkpoint, verified.

        Raises: WitnessAbsent; WitnessIsElsewhere; WitnessSawAnother.
        """
        body = "".join(f"{line}\n" for line in (f"old {old_size}", *map(encode, proof))) + "\n" + checkpoint
        status, answer = await self._send(
            OutboundRequest("POST", f"{witness.url}/add-checkpoint", _TEXT, body.encode())
        )
        match = _SIZE.fullmatch(answer)
        if status == 409 and match is not None and int(match[1]) != old_size:  # noqa: PLR2004 - HTTP, as below
            raise WitnessIsElsewhere(int(match[1]))
        # Equal sizes with different roots are 422 since July 2026, and were 409 before.
        if status in {409, 422}:
            raise WitnessSawAnother
        if status != 200:  # noqa: PLR2004 - HTTP
            raise WitnessAbsent(f"answered {status}")
        return _find_cosignature(witness, checkpoint, answer)

    async def read_checkpoint(self, witness: Witness, origin: str) -> bytes:
        """Return the newest checkpoint of a log that the witness has, unverified.

        Raises: WitnessAbsent.
        """
        name = hashlib.sha256(origin.encode()).hexdigest()
        status, answer = await self._send(OutboundRequest("GET", f"{witness.url}/{name}/checkpoint", _TEXT))
        if status != 200:  # noqa: PLR2004 - HTTP
            raise WitnessAbsent(f"answered {status}")
        return answer

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _send(self, request: OutboundRequest) -> tuple[int, bytes]:
        try:
            response = await self._client.send(request, timeout_s=ANSWER_TIMEOUT_S)
        except RequestLost as lost:
            raise WitnessAbsent(lost.reason) from None
        return response.status, response.body


def _find_cosignature(witness: Witness, checkpoint: str, answer: bytes) -> NoteSignature:
    try:
        text = parse_note(checkpoint).text
        for line in parse_signatures(answer.decode("utf-8", "replace")):
            if is_cosigned(Note(text, (line,)), witness.key):
                return line
    except NotANote:
        pass
    raise WitnessAbsent("did not cosign")
