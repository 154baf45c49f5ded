"""Reading JSON as I-JSON (RFC 7493): what two parsers could understand differently is refused."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

JsonValue: TypeAlias = bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"] | None

INTEGER_MAX: Final = 2**53 - 1  # RFC 7493 section 2.2.
_EXPONENT_FROM: Final = 1e21  # From here on RFC 8785 writes an exponent, so the value reads back as what it was.
_DEPTH_PARSED: Final = 256  # Far above every limit on content, far below the parser's recursion limit.
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
# A string that stays open reaches to the end, so that no character is read twice: quadratic time would be a weapon.
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


class MalformedJson(ValueError):  # noqa: N818 - named for what was found, like every problem
    """The text is no I-JSON."""


class Unrepresentable:
    """Stands where a document holds what a double cannot hold exactly, or nests beyond all reason.

    Syntax is not at fault there, so the parser goes on; no model accepts it and nothing canonicalises it.
    """

    def __repr__(self) -> str:
        return "Unrepresentable()"


_UNREPRESENTABLE: Final = Unrepresentable()


def parse_json(data: bytes) -> Any:
    """The value of a JSON text in UTF-8, of any kind; `Unrepresentable` stands for what cannot be held.

    Raises: MalformedJson for broken syntax, invalid UTF-8, an empty text, duplicate member names at any depth, NaN,
        Infinity and lone surrogates.
    Source: RFC 7493; contract, section 1.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedJson("not valid UTF-8") from None
    try:
        value = _loads(text)
    except RecursionError:
        value = _loads(_cut_deep_parts(text))
    if _SURROGATE_ESCAPE.search(text):
        _refuse_lone_surrogates(value)
    return value


def is_exact_number(number: float) -> bool:
    """Whether `number` means the same to every reader of its canonical form."""
    if isinstance(number, int):
        return -INTEGER_MAX <= number <= INTEGER_MAX
    if not math.isfinite(number):
        return False
    return abs(number) <= INTEGER_MAX or abs(number) >= _EXPONENT_FROM


def _loads(text: str) -> Any:
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_int=_integer,
            parse_float=_float,
        )
    except json.JSONDecodeError as error:
        raise MalformedJson(f"broken at character {error.pos}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise MalformedJson("a member name occurs twice in one object")
    return members


def _refuse_constant(_: str) -> Any:
    raise MalformedJson("NaN and Infinity are no JSON numbers")


def _integer(text: str) -> int | Unrepresentable:
    # Sixteen digits and a sign hold every allowed integer; int() of a million digits would cost seconds.
    number = int(text) if len(text) <= 17 else INTEGER_MAX + 1  # noqa: PLR2004 - see the line above
    return number if is_exact_number(number) else _UNREPRESENTABLE


def _float(text: str) -> float | Unrepresentable:
    number = float(text)
    return number if is_exact_number(number) else _UNREPRESENTABLE


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False, default=repr).encode("utf-8")
    except UnicodeEncodeError:
        raise MalformedJson("a surrogate stands alone") from None


def _cut_deep_parts(text: str) -> str:
    """Replace what lies deeper than `_DEPTH_PARSED` by a number that becomes `Unrepresentable`.

    The place of the excess stays known, and so does whether the rest of the text is well formed.
    """
    parts: list[str] = []
    depth = kept_to = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
                if depth == _DEPTH_PARSED:
                    parts.append(text[kept_to : token.start()])
            case "]" | "}":
                if depth == _DEPTH_PARSED:
                    parts.append("1e999")
                    kept_to = token.end()
                depth -= 1
            case _:
                continue
    if depth >= _DEPTH_PARSED:
        raise MalformedJson("brackets stay open")
    return "".join([*parts, text[kept_to:]])
