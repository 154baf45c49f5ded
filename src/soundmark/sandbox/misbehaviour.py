"""Switches with which the stand-ins misbehave on command."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

SystemName = Literal["card", "local", "accounting", "desk"]
SYSTEMS: Final[tuple[SystemName, ...]] = get_args(SystemName)

# What an operation can do instead of answering properly, and what it means.
OPERATION_KINDS: Final = {
    "slow": "waits some seconds, then works and answers",
    "held": "waits until it is released, then works and answers",
    "held_answer": "works, then waits to answer until it is released",
    "held_error": "waits until it is released, then answers 500 without working",
    "lost_answer": "works, then closes the connection",
    "half_body": "works, then sends half of the body and closes the connection",
    "false_error": "works, and answers 500 all the same",
    "down": "closes the connection without working",
    "server_error": "answers 500 without working",
    "rate_limited": "answers 429 without working",
    "refused": "answers 401 without working",
    "conflict": "answers 409 without working",
    "redirect": "answers 307 to another address without working",
    "html": "answers an HTML page with 200 without working",
    "html_as_json": "answers an HTML page as JSON without working",
    "firewall": "answers an HTML page with 403 without working",
    "endless": "answers a body that never ends, without working",
    "list": "answers a list in place of an object without working",
    "empty_list": "answers an empty list without working",
    "wrong_object": "answers another object without working",
    "wrong_amount": "works, and answers amounts that are one unit too high",
    "altered": "works, and merges a given JSON object into its answer",
}
WEBHOOK_KINDS: Final = {
    "duplicate_webhook": "sends each webhook twice",
    "reordered_webhooks": "gathers webhooks for some seconds, then sends the newest first",
}
KINDS: Final = {**OPERATION_KINDS, **WEBHOOK_KINDS}
EVERY: Final = "*"

_SWITCHES_MAX: Final = 100


@dataclass(slots=True)
class Switch:
    """One misbehaviour of a system: of the operation that is named, or of every one.

    `times` is how often it will still happen; None means until it is reset. `seconds` is how long `slow` waits and
    `reordered_webhooks` gathers. `merge` is merged into what is answered (RFC 7396), which is all that `altered` does.
    A refusal has the `headers` too.
    """

    system: SystemName
    kind: str
    operation: str = EVERY
    times: int | None = 1
    seconds: float = 2
    merge: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


class TooManySwitches(Exception):
    """No further switch is taken."""


class Switches:
    """All switches that are on."""

    def __init__(self) -> None:
        self._on: list[Switch] = []
        # The operations of each system, so that a misspelt one is refused.
        self.operations: Final[Mapping[SystemName, set[str]]] = {system: set() for system in SYSTEMS}

    def add(self, switch: Switch) -> None:
        """Turn a switch on.

        Raises: TooManySwitches.
        """
        if len(self._on) >= _SWITCHES_MAX:
            raise TooManySwitches
        self._on.append(switch)

    def list(self) -> tuple[Switch, ...]:
        """Return the switches that are on, the oldest first."""
        return tuple(self._on)

    def reset(self, system: str | None = None) -> None:
        """Turn off the switches of one system, or all."""
        self._on = [switch for switch in self._on if system is not None and switch.system != system]

    def take(self, system: str, operation: str, kinds: Mapping[str, str]) -> Switch | None:
        """Return the oldest switch for this operation, and count this time."""
        for switch in self._on:
            if switch.system == system and switch.operation in {EVERY, operation} and switch.kind in kinds:
                if switch.times is not None:
                    switch.times -= 1
                    if switch.times <= 0:
                        self._on.remove(switch)
                return switch
        return None
