"""What the systems were asked, and what no careful client would have sent."""

from collections import deque
from dataclasses import dataclass
from typing import Final

_ITEMS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Call:
    """One request to an operation; `path` is below the address of the sandbox."""

    system: str
    operation: str
    path: str
    query: str = ""
    idempotency_key: str | None = None


class Journal:
    """The latest calls and complaints, the oldest first. A complaint changes no answer."""

    def __init__(self) -> None:
        self.calls: Final[deque[Call]] = deque(maxlen=_ITEMS_MAX)
        self.complaints: Final[deque[str]] = deque(maxlen=_ITEMS_MAX)

    def require(self, condition: object, complaint: str) -> None:
        """Note a complaint unless the condition holds."""
        if not condition:
            self.complaints.append(complaint)

    def clear(self) -> None:
        """Forget everything."""
        self.calls.clear()
        self.complaints.clear()
