"""Why an export is refused."""

from typing import Final, Literal

Reason = Literal[
    "unknown_member", "missing_member", "invalid_member", "repeated_row", "sum_differs", "reach_impossible", "differs"
]


# A page shows these; the answer may be of any size.
_CHARS_MAX: Final = 200


class ExportRefused(Exception):
    """The API's answers do not make a true export.

    `member` is the place in the answer, such as `report.by_day[3].events`. `expected` and `found` are set for what does
    not agree, as the answer writes them.
    """

    def __init__(self, reason: Reason, member: str, *, expected: object = None, found: object = None) -> None:
        self.reason: Final = reason
        self.member: Final = _write(member)
        self.expected: Final = _write(expected)
        self.found: Final = _write(found)
        super().__init__(f"{reason}: {self.member}: expected {self.expected}, found {self.found}")


def require_equal(member: str, expected: object, found: object) -> None:
    """Make sure that a member of an answer says what the request or another answer says.

    Raises: ExportRefused.
    """
    if expected != found:
        raise ExportRefused("differs", member, expected=expected, found=found)


def _write(value: object) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= _CHARS_MAX else f"{text[:_CHARS_MAX]}…"
