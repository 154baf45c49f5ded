"""JSON Schemas as rows of a table: one row for each member, nested ones after their parent."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Schema = Mapping[str, Any]

_DEPTH_MAX: Final = 6  # Nobody reads deeper tables, and a schema may contain itself.
_ANYTHING: Final = "any value"
# Bounds of JSON Schema, and their wording.
_BOUNDS: Final = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
)
_SIZES: Final = (
    ("minLength", "maxLength", "characters"),
    ("minItems", "maxItems", "entries"),
    ("minProperties", "maxProperties", "members"),
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A constraint on a value: words, and a text that is shown as code."""

    words: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One member, parameter or entry. `name` is the full path to it, such as `data[].intent.type`."""

    name: str
    depth: int
    type_text: str
    required: bool
    description: str
    facts: tuple[Fact, ...]


class Schemas:
    """Reads schemas that refer to each other by `$ref` within one document."""

    def __init__(self, components: Mapping[str, Schema]) -> None:
        self._components: Final = components

    def row(self, name: str, schema: Schema, *, required: bool, description: str = "", depth: int = 0) -> Row:
        """Return the row of one value."""
        plain, nullable = self._plain(schema)
        return Row(
            name,
            depth,
            self._type_text(plain) + (" or null" if nullable else ""),
            required,
            description or str(schema.get("description") or plain.get("description", "")),
            tuple(_facts(plain)),
        )

    def rows(self, schema: Schema, prefix: str = "", depth: int = 0) -> Iterator[Row]:
        """Yield the rows of an object's members or a list's entries, and those of nested values."""
        plain, _ = self._plain(schema)
        if depth >= _DEPTH_MAX:
            return
        if "items" in plain:
            yield from self.rows(plain["items"], f"{prefix}[]", depth)
        for name, member in plain.get("properties", {}).items():
            path = f"{prefix}.{name}" if prefix else name
            yield self.row(path, member, required=name in plain.get("required", ()), depth=depth)
            yield from self.rows(member, path, depth + 1)
        for alternative in _alternatives(plain):
            yield from self.rows(alternative, prefix, depth)

    def _plain(self, schema: Schema) -> tuple[Schema, bool]:
        """Return the schema without `$ref` and without null, and whether null is allowed."""
        nullable = False
        while True:
            if "$ref" in schema:
                schema = self._components[schema["$ref"].rpartition("/")[2]]
                continue
            match schema.get("type"):
                case [*kinds] if "null" in kinds:
                    nullable = True
                    rest = [kind for kind in kinds if kind != "null"]
                    schema = {**schema, "type": rest[0] if len(rest) == 1 else rest}
            options = [*_alternatives(schema), *schema.get("allOf", ())]
            others = [option for option in options if option.get("type") != "null"]
            nullable = nullable or len(others) < len(options)
            if len(others) != 1:
                return schema, nullable
            schema = others[0]

    def _type_text(self, schema: Schema) -> str:
        if "const" in schema or "enum" in schema:
            return str(schema.get("type", "value"))
        options = [self._type_text(self._plain(option)[0]) for option in _alternatives(schema)]
        if options:
            return " or ".join(dict.fromkeys(options))
        kind = schema.get("type", _ANYTHING)
        if isinstance(kind, list):
            return " or ".join(kind)
        if kind == "array":
            entry = self._type_text(self._plain(schema.get("items", {}))[0])
            return "list" if entry == _ANYTHING else f"list of {entry}s"
        return {"date-time": "timestamp", "binary": "bytes"}.get(schema.get("format", ""), str(kind))


def _alternatives(schema: Schema) -> list[Schema]:
    return [*schema.get("anyOf", ()), *schema.get("oneOf", ())]


def _facts(schema: Schema) -> Iterator[Fact]:
    if "const" in schema:
        yield Fact("always", _literal(schema["const"]))
    if "enum" in schema:
        yield Fact("one of", ", ".join(map(_literal, schema["enum"])))
    for least, most, unit in _SIZES:
        yield from _size(schema.get(least), schema.get(most), unit)
    for name, words in _BOUNDS:
        if name in schema:
            yield Fact(words.format(schema[name]))
    if "pattern" in schema:
        yield Fact("matches", schema["pattern"])
    if schema.get("format") not in {None, "date-time", "binary"}:
        yield Fact("format", schema["format"])
    if schema.get("uniqueItems"):
        yield Fact("no entry twice")
    if schema.get("default") is not None:
        yield Fact("default", _literal(schema["default"]))


def _size(least: int | None, most: int | None, unit: str) -> Iterator[Fact]:
    match least, most:
        case None, None:
            return
        case int(), int() if least == most:
            yield Fact(f"exactly {least} {unit}")
        case int(), int():
            yield Fact(f"{least} to {most} {unit}")
        case None, _:
            yield Fact(f"at most {most} {unit}")
        case _:
            yield Fact(f"at least {least} {unit}")


def _literal(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
