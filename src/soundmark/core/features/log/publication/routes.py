"""The routes of the transparency log, in the formats of C2SP. They need no credential, and read none."""

import gzip
import re
from typing import Annotated, Any, Final

from fastapi import Path
from starlette.requests import Request
from starlette.responses import Response

from soundmark.core.domain.log.tiles import parse_path
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import ClientDigest, Ctx
from soundmark.core.features.log.publication import example, service
from soundmark.core.features.log.publication.wire import LogView, LogWitness
from soundmark.core.problems import LogEntryNotFound
from soundmark.kit.http.responses.problems import NotFound, RateLimited

operations = Operations("Transparency log")

_PLAIN: Final = "text/plain"
_TEXT: Final = f"{_PLAIN}; charset=utf-8"
_BYTES: Final = "application/octet-stream"
_FOR_EVER: Final = "public, max-age=31536000, immutable"  # Details of the contract, 11.
_GZIP_LEVEL: Final = 6
_REFUSED: Final = re.compile(r" *q=0(\.0*)? *")
LevelPath = Annotated[str, Path(description="The tile's level, 0 to 63.", examples=["0"])]
NumberPath = Annotated[
    str,
    Path(
        description="The number in groups of three digits, such as `x001/234`; a part of it ends with `.p/` and the "
        "number of its hashes or entries.",
        examples=["000.p/2"],
    ),
]
DigestPath = Annotated[
    str,
    Path(description="A commitment of the entry, base64url.", examples=["qk0G0lUG1pQa8uS0zN5m0s0j9lYk3vB3mT1nq9u3o5E"]),
]


def _answer(media_type: str, description: str) -> dict[int | str, dict[str, Any]]:
    schema = {"type": "string"} if media_type == _PLAIN else {"type": "string", "format": "binary"}
    return {200: {"description": description, "content": {media_type: {"schema": schema}}}}


@operations.add("GET", "/v1/log", Operation(None, problems=(NotFound,)), example=example.LOG)
async def get_log(ctx: Ctx) -> LogView:
    """Return the log's origin, keys, size, state and witnesses.

    The log commits to every issued and revoked Code, every signing key, and every signed document; it reveals how many
    there were and when, and nothing else. Verify it with any tool for C2SP's tlog-tiles. Its prefix is this path.
    """
    found = await service.read_log(ctx)
    reason = found.log.stopped_reason
    return LogView(
        origin=found.log.origin,
        vkeys=[str(key) for key in found.keys],
        size=found.published.size,
        integrated_at=found.published.signed_at,
        state="integrating" if reason is None else "stopped",
        stopped_reason=reason,
        witnesses=[LogWitness(name=each.key.name, vkey=str(each.key)) for each in ctx.transparency.witnesses],
    )


@operations.add(
    "GET",
    "/v1/log/checkpoint",
    Operation(None, problems=(NotFound,)),
    responses=_answer(_PLAIN, "A signed note: C2SP, tlog-checkpoint."),
    response_class=Response,
)
async def get_log_checkpoint(ctx: Ctx) -> Response:
    """Return the newest published checkpoint, with the cosignatures of witnesses.

    Whatever a response reported is in a checkpoint within five seconds plus the time that the witnesses need.
    """
    return Response(await service.read_checkpoint(ctx), media_type=_TEXT)


@operations.add(
    "GET",
    "/v1/log/tile/entries/{number:path}",
    Operation(None, problems=(NotFound,)),
    responses=_answer(_BYTES, "Entries, each after its length in two bytes: C2SP, tlog-tiles."),
    response_class=Response,
)
async def get_log_entries(ctx: Ctx, number: NumberPath, request: Request) -> Response:
    """Return a bundle of up to 256 entries. It never changes."""
    response = await _read_tile(ctx, f"entries/{number}")
    response.headers["vary"] = "accept-encoding"
    if _accepts_gzip(request.headers.get("accept-encoding", "")):
        response.headers["content-encoding"] = "gzip"
        response.body = gzip.compress(bytes(response.body), _GZIP_LEVEL, mtime=0)
        response.headers["content-length"] = str(len(response.body))
    return response


@operations.add(
    "GET",
    "/v1/log/tile/{level}/{number:path}",
    Operation(None, problems=(NotFound,)),
    responses=_answer(_BYTES, "Hashes of 32 bytes each: C2SP, tlog-tiles."),
    response_class=Response,
)
async def get_log_tile(ctx: Ctx, level: LevelPath, number: NumberPath) -> Response:
    """Return a tile of up to 256 hashes of the Merkle tree. It never changes."""
    return await _read_tile(ctx, f"{level}/{number}")


@operations.add(
    "GET",
    "/v1/log/proofs/{digest}",
    Operation(None, problems=(LogEntryNotFound, RateLimited), note="limited as resolution, by a counter of its own"),
    responses=_answer(_PLAIN, "A proof with the entry itself as `extra`: C2SP, tlog-proof."),
    response_class=Response,
)
async def get_log_proof(ctx: Ctx, client: ClientDigest, digest: DigestPath) -> Response:
    """Return a proof that the entry with this commitment is in the newest published checkpoint.

    The commitment is SHA-256, in base64url, of `soundmark/log/v1/`, the entry's kind, `/`, the member's name, a zero
    byte, and the RFC 8785 bytes of the value.
    """
    headers = await ctx.log_proof_limit.count(client)
    proof = await service.find_proof(ctx, digest)
    if proof is None:
        raise LogEntryNotFound(headers=headers)
    return Response(proof, media_type=_TEXT, headers=headers)


async def _read_tile(ctx: Ctx, path: str) -> Response:
    request = parse_path(path)
    if request is None:
        raise NotFound
    content = await service.read_tile(ctx, request)
    return Response(content, media_type=_BYTES, headers={"cache-control": _FOR_EVER})


def _accepts_gzip(accepted: str) -> bool:
    """Return whether a client names gzip, and not as what it refuses."""
    for part in accepted.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == "gzip":
            return _REFUSED.fullmatch(weight) is None
    return False
