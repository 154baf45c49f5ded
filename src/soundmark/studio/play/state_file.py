"""The file in which an agent keeps what it holds, so that it goes on after a power cut, even without the service."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from soundmark.operating_system.files import InUse, NotTrusted, kept_alone, read_trusted, write_private
from soundmark.studio.play.playout import Playout
from soundmark.studio.play.records import HeldCode, SourceCode

_VERSION: Final = 1


class StateRefused(Exception):
    """The file cannot be used; the message names it and says what to do."""


@dataclass(frozen=True, slots=True)
class HeldLine:
    """What a line held when the state was saved."""

    source: SourceCode | None
    held: tuple[HeldCode, ...]
    source_from: datetime | None


@dataclass(frozen=True, slots=True)
class SavedState:
    """What an agent keeps: `agent_id` begins its idempotency keys, `saved_at` is the service's time."""

    agent_id: str
    saved_at: datetime | None = None
    rotate_s: float | None = None
    generation: int = 0
    lines: dict[str, HeldLine] = field(default_factory=dict)
    discarded: tuple[HeldCode, ...] = ()

    def restore(self, playout: Playout, now: datetime) -> None:
        """Give a playout what an earlier run held, and give up what it has no use for.

        Slots of another length have other numbers, so with another rotation every held Code is of no use.
        """
        rotation = playout.rotation
        is_same = rotation is not None and rotation.every.total_seconds() == self.rotate_s
        unused = list(self.discarded)
        known = {line.name: line for line in playout.lines}
        for name, kept in self.lines.items():
            line = known.get(name)
            if line is not None:
                line.source, line.source_from = kept.source, kept.source_from
            if line is None or rotation is None or not is_same:
                unused += kept.held
                continue
            line.held = {held.slot: held for held in kept.held}
            # They have sounded, or were about to.
            playout.sounded.update(held.xr_id for held in kept.held if held.slot <= rotation.slot_at(now))
        playout.generation = self.generation
        playout.discard(unused)


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    version: Annotated[int, Field(ge=_VERSION, le=_VERSION)]
    state: SavedState


class StateFile:
    """The file of one agent, mode 0600: who can read it knows Codes before they sound."""

    def __init__(self, path: Path) -> None:
        self._path: Final = path

    def read(self) -> SavedState | None:
        """Return what was saved, or None.

        Raises: StateRefused.
        """
        try:
            return _Stored.model_validate_json(read_trusted(self._path)).state
        except FileNotFoundError:
            return None
        except NotTrusted as untrusted:
            raise StateRefused(str(untrusted)) from None
        except OSError as error:
            raise StateRefused(f"{self._path} cannot be read: {error.strerror}") from None
        except (ValidationError, ValueError):
            raise StateRefused(f"{self._path} was not written by `soundmark play`; remove it") from None

    def save(self, state: SavedState) -> None:
        """Replace what was saved; it is on the disk when this returns.

        Raises: OSError.
        """
        document = _Stored(version=_VERSION, state=state).model_dump(mode="json")
        write_private(self._path, json.dumps(document) + "\n")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other agents from the file until the block ends or this process dies.

        Raises: StateRefused.
        """
        if self._path.is_dir():
            raise StateRefused(f"{self._path} cannot be written: it is a directory")
        with ExitStack() as stack:
            try:
                stack.enter_context(kept_alone(self._path))
            except InUse:
                raise StateRefused(f"another `soundmark play` uses {self._path}; give this one --state FILE") from None
            except NotTrusted as untrusted:
                raise StateRefused(str(untrusted)) from None
            except OSError as error:
                raise StateRefused(f"{self._path} cannot be written: {error.strerror}") from None
            yield
