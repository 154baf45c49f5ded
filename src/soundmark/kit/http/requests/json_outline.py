"""Reading cheaply some members of a JSON text that holds more values than any request needs."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from soundmark.kit.http.requests.strict_json import (
    DEPTH_PARSED,
    STRING_OR_BRACKET,
    STRUCTURE_MAX,
    MalformedJson,
    parse_json,
)


def read_outline(data: bytes, names: Sequence[str], *, structure_max: int = STRUCTURE_MAX) -> dict[str, Any]:
    """Return the members `names` of a JSON text for which `parse_json` returns `Unrepresentable`.

    A member that by itself holds too much is `Unrepresentable`. If the text nests too deeply, only the members before
    that place are returned, and the one that contains it, with an `Unrepresentable` in it. A text that is not an object
    has no members.

    Raises: MalformedJson, as `parse_json` does, for the members that are read.
    """
    try:
        found = msgspec.json.decode(data, type=_outline_type(tuple(names)))
    except RecursionError:
        return _read_shallow_part(data.decode("utf-8"), names, structure_max)
    except msgspec.ValidationError:
        return {}
    except msgspec.DecodeError:
        raise MalformedJson("a string is malformed") from None
    return {
        name: parse_json(bytes(raw), structure_max=structure_max)
        for name, raw in msgspec.structs.asdict(found).items()
        if raw is not msgspec.UNSET
    }


@lru_cache(maxsize=256)
def _outline_type(names: tuple[str, ...]) -> type[msgspec.Struct]:
    """Return a type that keeps the bytes of these members and skips all others."""
    return msgspec.defstruct("Outline", [(name, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for name in names])


def _read_shallow_part(text: str, names: Sequence[str], structure_max: int) -> dict[str, Any]:
    """Read the text up to where it nests too deeply, as if every bracket were closed there.

    Return no members of a text with too many strings and brackets before that place.
    """
    closing: list[str] = []
    for count, token in enumerate(STRING_OR_BRACKET.finditer(text)):
        match token[0]:
            case "[":
                closing.append("]")
            case "{":
                closing.append("}")
            case "]" | "}" if closing:
                closing.pop()
        if len(closing) == DEPTH_PARSED:
            break
        if count == structure_max:
            return {}
    else:
        return {}
    shallow = f"{text[: token.start()]}1e999{''.join(reversed(closing[:-1]))}"
    value = parse_json(shallow.encode(), structure_max=structure_max)
    return {name: value[name] for name in names if name in value} if isinstance(value, dict) else {}
