"""The shape of what the log says of itself."""

from typing import Annotated, Literal

from pydantic import Field

from soundmark.wire.shape import Timestamp, Wire


class LogWitness(Wire):
    """A witness that Core asks to cosign checkpoints."""

    name: str
    vkey: Annotated[str, Field(description="Its key, in the format of C2SP's signed-note.")]


class LogView(Wire):
    """The transparency log."""

    origin: Annotated[str, Field(description="The first line of every checkpoint, and the name of the log's keys.")]
    vkeys: Annotated[list[str], Field(description="The keys that sign checkpoints, newest first.")]
    size: Annotated[int, Field(description="The number of entries in the newest published checkpoint.")]
    integrated_at: Annotated[Timestamp, Field(description="When that checkpoint was signed.")]
    state: Literal["integrating", "stopped"]
    stopped_reason: Annotated[
        Literal["witness_conflict", "tree_damaged", "restored"] | None,
        Field(description="Why the log has stopped; null while the log is integrating."),
    ]
    witnesses: list[LogWitness]
