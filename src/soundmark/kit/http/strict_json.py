"""Reading JSON as I-JSON (RFC 7493): what two parsers could understand differently is refused."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

JsonValue: TypeAlias = bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"] | None

INTEGER_MAX: Final = 2**53 - 1  # RFC 7493 section 2.2.
# Values of one text, as `count_structure` counts them. Each costs about 0.2 µs to read, a hundred times what a
# character of a string costs. The bodies of requests have closer limits.
STRUCTURE_MAX: Final = 128 * 1024
_EXPONENT_FROM: Final = 1e21  # From here on RFC 8785 writes an exponent, so the value reads back as what it was.
_WHITESPACE: Final = " \t\n\r"
DEPTH_PARSED: Final = 256  # Far above every limit on content, far below the parser's recursion limit.
_COUNTED: Final = b"[{,"  # One for each value, but for the first of each list and object.
_NOT_COUNTED: Final = bytes(set(range(256)) - set(_COUNTED))
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
# A string that stays open reaches to the end, so that no character is read twice: quadratic time would be a weapon.
STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


class MalformedJson(ValueError):  # noqa: N818 - named for what was found, like every problem
    """The text is no I-JSON."""


class Unrepresentable:
    """Stands where a document holds what a double cannot hold exactly, or nests beyond all reason.

    Syntax is not at fault there, so the parser goes on; no model accepts it and nothing canonicalises it.
    """

    def __repr__(self) -> str:
        return "Unrepresentable()"


_UNREPRESENTABLE: Final = Unrepresentable()


def parse_json(data: bytes, *, structure_max: int = STRUCTURE_MAX) -> Any:
    """Return the value of a JSON text in UTF-8, of any kind; `Unrepresentable` stands for what cannot be held.

    A number that is written `7.0` is the integer 7, as RFC 8785 has it.

    A text for which `count_structure` answers more than `structure_max` is `Unrepresentable` as a whole: only its
    syntax is judged, because building its values costs a hundred times what reading a string of its size costs.
    `json_outline` says what else is known of it.

    Raises: MalformedJson for broken syntax, invalid UTF-8, an empty text, duplicate member names at any depth, NaN,
        Infinity and lone surrogates.
    Source: RFC 7493; contract, section 1.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedJson("not valid UTF-8") from None
    if count_structure(data) > structure_max:
        _require_syntax(data, text)
        return _UNREPRESENTABLE
    try:
        value = _loads(text)
    except RecursionError:
        _require_closed(text)
        value = _loads(_cut_deep_parts(text))
    if _SURROGATE_ESCAPE.search(text):
        _refuse_lone_surrogates(value)
    return value


def count_structure(data: bytes) -> int:
    """Count the characters `[`, `{` and `,`, which open and separate values; those inside of strings count too."""
    return len(data.translate(None, delete=_NOT_COUNTED))


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
    if not is_exact_number(number):
        return _UNREPRESENTABLE
    # `7.0` and `7` are one number and have one canonical form, so they are one request.
    return int(number) if number.is_integer() and abs(number) <= INTEGER_MAX else number


def _require_syntax(data: bytes, text: str) -> None:
    """Judge the syntax of a text without building its values.

    Of a text that nests deeper than the library reads, only that its strings and brackets are closed.

    Raises: MalformedJson.
    """
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except RecursionError:
        _require_closed(text)
    except msgspec.DecodeError as error:
        raise MalformedJson(str(error).removeprefix("JSON is malformed: ").lower()) from None


def _require_closed(text: str) -> None:
    """Judge in linear time whether every string and every bracket is closed, and nothing follows the last one.

    Raises: MalformedJson.
    """
    pieces = text.replace("\\\\", "").replace('\\"', "").split('"')
    if len(pieces) % 2 == 0:
        raise MalformedJson("a string stays open")
    outside = "".join(pieces[::2]).strip(_WHITESPACE)
    for opening, closing in ("[]", "{}"):
        if outside.count(opening) != outside.count(closing):
            raise MalformedJson("brackets stay open")
    if outside[:1] + outside[-1:] not in {"[]", "{}"}:
        raise MalformedJson("something stands outside of the brackets")


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False, default=repr).encode("utf-8")
    except UnicodeEncodeError:
        raise MalformedJson("a surrogate stands alone") from None


def _cut_deep_parts(text: str) -> str:
    """Replace what lies deeper than `DEPTH_PARSED` by a number that becomes `Unrepresentable`.

    The place of the excess stays known, and so does whether the rest of the text is well formed.
    """
    parts: list[str] = []
    depth = kept_to = 0
    for token in STRING_OR_BRACKET.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
                if depth == DEPTH_PARSED:
                    parts.append(text[kept_to : token.start()])
            case "]" | "}":
                if depth == DEPTH_PARSED:
                    parts.append("1e999")
                    kept_to = token.end()
                depth -= 1
            case _:
                continue
    if depth >= DEPTH_PARSED:
        raise MalformedJson("brackets stay open")
    return "".join([*parts, text[kept_to:]])
