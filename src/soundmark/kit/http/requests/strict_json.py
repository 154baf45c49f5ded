"""Reading JSON as I-JSON (RFC 7493), which refuses everything that two parsers could read differently."""

import json
import math
import re
from typing import Any, Final

import msgspec

INTEGER_MAX: Final = 2**53 - 1  # RFC 7493 section 2.2.
# The most values in one text, as `count_structure` counts them. Each costs about 0.2 µs to read, a hundred times as
# much as a character of a string. Request bodies have lower limits.
STRUCTURE_MAX: Final = 128 * 1024
_EXPONENT_FROM: Final = 1e21  # From here on RFC 8785 writes an exponent, so the number is read back unchanged.
_WHITESPACE: Final = " \t\n\r"
DEPTH_PARSED: Final = 256  # Far above every limit on content, far below the parser's recursion limit.
_COUNTED: Final = b"[{,"  # One for each value, except the first in each list or object.
_NOT_COUNTED: Final = bytes(set(range(256)) - set(_COUNTED))
_NOT_MARKS: Final = bytes(set(range(256)) - set(b'"[]{}'))
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
# An unclosed string extends to the end, so that no character is read twice: quadratic time could be abused.
STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


class MalformedJson(ValueError):
    """The text is not I-JSON."""


class Unrepresentable:
    """A placeholder for a number that a double cannot hold exactly, and for values nested too deeply.

    Its syntax is correct, so the parser continues; but no model accepts it, and it has no canonical form.
    """

    def __repr__(self) -> str:
        return "Unrepresentable()"


_UNREPRESENTABLE: Final = Unrepresentable()


def parse_json(data: bytes, *, structure_max: int = STRUCTURE_MAX) -> Any:
    """Return the value of a JSON text in UTF-8, with `Unrepresentable` in place of values that cannot be held.

    A number that is written `7.0` is the integer 7, as in RFC 8785.

    A text for which `count_structure` returns more than `structure_max` is `Unrepresentable` as a whole: only its
    syntax is checked, because building its values costs a hundred times as much as reading a string of its size.
    `json_outline` can read some of its members.

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
    """Count the characters `[`, `{` and `,`, which open and separate values; those inside strings count too."""
    return len(data.translate(None, delete=_NOT_COUNTED))


def is_exact_number(number: float) -> bool:
    """Return whether every reader of the canonical form of `number` gets the same number."""
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
    raise MalformedJson("NaN and Infinity are not JSON numbers")


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
    """Check the syntax of a text without building its values.

    If the text nests deeper than the library can read, check only that its strings and brackets are closed.

    Raises: MalformedJson.
    """
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except RecursionError:
        _require_closed(text)
    except msgspec.DecodeError as error:
        raise MalformedJson(str(error).removeprefix("JSON is malformed: ").lower()) from None


def _require_closed(text: str) -> None:
    """Check in linear time that every string and every bracket is closed, and nothing follows the last bracket.

    Raises: MalformedJson.
    """
    unescaped = text.replace("\\\\", "").replace('\\"', "")
    # Splitting at each quotation mark would make a hundred thousand pieces. Most strings contain no bracket, and two
    # marks side by side can go: what is inside a string stays inside.
    marks = unescaped.encode().translate(None, delete=_NOT_MARKS).replace(b'""', b"")
    pieces = marks.split(b'"')
    if len(pieces) % 2 == 0:
        raise MalformedJson("a string is not closed")
    outside = b"".join(pieces[::2])
    for opening, closing in ((b"[", b"]"), (b"{", b"}")):
        if outside.count(opening) != outside.count(closing):
            raise MalformedJson("a bracket is not closed")
    bare = text.strip(_WHITESPACE)
    if bare[:1] + bare[-1:] not in {"[]", "{}"}:
        raise MalformedJson("there is text outside the brackets")


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False, default=repr).encode("utf-8")
    except UnicodeEncodeError:
        raise MalformedJson("a surrogate is unpaired") from None


def _cut_deep_parts(text: str) -> str:
    """Replace values deeper than `DEPTH_PARSED` by a number that becomes `Unrepresentable`.

    So the place of the excess stays known, and the rest of the text can be parsed.
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
        raise MalformedJson("a bracket is not closed")
    return "".join([*parts, text[kept_to:]])
