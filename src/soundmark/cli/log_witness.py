"""A small witness of its own, for logs that it is told: one process, whose file holds its key and what it has seen."""

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from soundmark.cli import Refused
from soundmark.core.domain.log.checkpoint import SignedCheckpoint, cosign, parse_checkpoint
from soundmark.core.domain.log.witness import WitnessRefusal, judge, read_request
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.signed_notes import COSIGNATURE, Note, VerifierKey
from soundmark.kit.crypto.signing import SEED_BYTES, SigningKey
from soundmark.kit.text import base64url
from soundmark.operating_system.files import NotTrusted, read_trusted, write_private

_BODY_BYTES_MAX: Final = 128 * 1024


class WitnessFile:
    """What a witness keeps: its name and key, and the last checkpoint of each log that it cosigned."""

    def __init__(self, path: Path, name: str, seed: bytes, seen: dict[str, str]) -> None:
        self._path: Final = path
        self._seed: Final = seed
        self._seen: Final = seen
        self.name: Final = name
        self.key: Final = SigningKey.from_seed(name, seed)

    @classmethod
    def open(cls, path: Path, name: str | None, entropy: Entropy) -> "WitnessFile":
        """Read the file, or make it with a new key.

        Raises: Refused.
        """
        try:
            if not path.exists():
                if name is None:
                    raise Refused(f"{path} does not exist; give the new witness a name with --name")
                made = cls(path, name, entropy.take(SEED_BYTES), {})
                made._write()
                return made
            kept: Any = json.loads(read_trusted(path))
            found = cls(path, kept["name"], base64url.decode(kept["seed"]), dict(kept["checkpoints"]))
        except (OSError, NotTrusted, ValueError, KeyError, TypeError, RecursionError) as error:
            raise Refused(f"{path} is not the file of a witness: {error}") from None
        if name not in {None, found.name}:
            raise Refused(f"{path} belongs to the witness {found.name}")
        return found

    @property
    def vkey(self) -> VerifierKey:
        """What verifies its cosignatures."""
        return VerifierKey(self.name, COSIGNATURE, self.key.public_key)

    def find(self, origin: str) -> SignedCheckpoint | None:
        """Return the last checkpoint of a log; None for one that was never cosigned.

        Raises: NotANote if somebody altered the file.
        """
        text = self._seen.get(origin)
        return None if text is None else parse_checkpoint(text)

    def keep(self, signed: SignedCheckpoint) -> None:
        """Keep the last checkpoint of its log, on the disk when this returns."""
        self._seen[signed.checkpoint.origin] = str(signed.note)
        self._write()

    def origin_of(self, digest: str) -> str | None:
        """Return the log whose origin has this SHA-256 digest."""
        return next((each for each in self._seen if hashlib.sha256(each.encode()).hexdigest() == digest), None)

    def _write(self) -> None:
        content = {"name": self.name, "seed": base64url.encode(self._seed), "checkpoints": self._seen}
        write_private(self._path, json.dumps(content, indent=2) + "\n")


def make_app(file: WitnessFile, keys: list[VerifierKey], clock: Clock) -> Starlette:
    """Return the witness of the logs with these keys, as tlog-witness describes it."""
    turn = asyncio.Lock()  # What was seen is compared and replaced by one request at a time.

    async def add_checkpoint(request: Request) -> Response:
        try:
            body = await _read(request)
            asked = read_request(body)
            origin = asked.signed.checkpoint.origin
            async with turn:
                known = file.find(origin)
                judge(asked, [key for key in keys if key.name == origin], None if known is None else known.checkpoint)
                cosignature = cosign(asked.signed.note.text, file.name, file.key, at_s=int(clock.unix_s()))
                note = Note(asked.signed.note.text, (*asked.signed.note.signatures, cosignature))
                file.keep(SignedCheckpoint(asked.signed.checkpoint, note))
        except WitnessRefusal as refusal:
            # As a header: Starlette would add a charset to the media type, which clients compare.
            return Response(refusal.body, refusal.status, {"content-type": refusal.media_type})
        return PlainTextResponse(str(cosignature))

    async def get_checkpoint(request: Request) -> Response:
        origin = file.origin_of(request.path_params["digest"])
        found = None if origin is None else file.find(origin)
        return Response(status_code=404) if found is None else PlainTextResponse(str(found.note))

    return Starlette(
        routes=[
            Route("/add-checkpoint", add_checkpoint, methods=["POST"]),
            Route("/{digest}/checkpoint", get_checkpoint, methods=["GET"]),
        ]
    )


async def _read(request: Request) -> bytes:
    """Raises: WitnessRefusal."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > _BODY_BYTES_MAX:
                raise WitnessRefusal(413, "the request is too large\n")
    except ClientDisconnect:
        raise WitnessRefusal(400, "the request was cut off\n") from None
    return body
