"""From an OpenAPI 3.1 document to the contents of the reference page."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from soundmark.core.published.reference.fields import Row, Schemas

Json = Mapping[str, Any]

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_ACCESS: Final = "x-svc-access"
_PROBLEM_TYPE: Final = "application/problem+json"
_UNTAGGED: Final = "Other"


@dataclass(frozen=True, slots=True)
class DocumentedBody:
    """A body of one media type: its members, and an example or None."""

    media_type: str
    description: str
    rows: tuple[Row, ...]
    example: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful response: its status, headers and bodies."""

    status: str
    description: str
    headers: tuple[Row, ...]
    contents: tuple[DocumentedBody, ...]


@dataclass(frozen=True, slots=True)
class ProblemCode:
    """A problem that one operation can return."""

    status: str
    code: str
    summary: str


@dataclass(frozen=True, slots=True)
class DocumentedOperation:
    """One method of one path."""

    anchor: str
    method: str
    path: str
    summary: str
    description: str
    deprecated: bool
    needs: tuple[str, ...]
    parameters: tuple[tuple[str, Row], ...]
    body: tuple[DocumentedBody, ...]
    answers: tuple[Answer, ...]
    problems: tuple[ProblemCode, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """The operations of one tag."""

    anchor: str
    name: str
    description: str
    operations: tuple[DocumentedOperation, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """The whole document."""

    title: str
    version: str
    introduction: str
    server: str
    groups: tuple[Group, ...]


def read_reference(openapi: Json) -> Reference:
    """Return the contents of the page: tags in their declared order, operations in the document's order."""
    described = {tag["name"]: tag.get("description", "") for tag in openapi.get("tags", ())}
    grouped: dict[str, list[DocumentedOperation]] = {name: [] for name in described}
    schemas = Schemas(openapi.get("components", {}).get("schemas", {}))
    for path, item in openapi.get("paths", {}).items():
        for method in filter(item.__contains__, _METHODS):
            operation = item[method]
            tag = next(iter(operation.get("tags", ())), _UNTAGGED)
            shared = item.get("parameters", ())
            grouped.setdefault(tag, []).append(_operation(method, path, operation, shared, schemas))
    return Reference(
        title=openapi["info"]["title"],
        version=openapi["info"]["version"],
        introduction=openapi["info"].get("description", ""),
        server=next((server["url"] for server in openapi.get("servers", ())), ""),
        groups=tuple(
            Group(_anchor("tag", name), name, described.get(name, ""), tuple(operations))
            for name, operations in grouped.items()
            if operations
        ),
    )


def _operation(
    method: str, path: str, operation: Json, shared: Sequence[Json], schemas: Schemas
) -> DocumentedOperation:
    body = operation.get("requestBody", {})
    return DocumentedOperation(
        anchor=_anchor(operation.get("operationId", f"{method} {path}")),
        method=method.upper(),
        path=path,
        summary=operation.get("summary", ""),
        description=operation.get("description", ""),
        deprecated=operation.get("deprecated", False),
        needs=tuple(_needs(operation[_ACCESS])) if _ACCESS in operation else (),
        parameters=tuple(
            (parameter["in"], _parameter(parameter, schemas))
            for parameter in [*shared, *operation.get("parameters", ())]
        ),
        body=tuple(_contents(body.get("content", {}), schemas)),
        answers=tuple(
            _answer(status, response, schemas)
            for status, response in operation.get("responses", {}).items()
            if not _is_problem(response)
        ),
        problems=tuple(_problems(operation.get("responses", {}))),
    )


def _needs(access: Json) -> Iterator[str]:
    if access.get("public"):
        yield "no credential"
        return
    roles = list(access.get("roles") or ())
    yield f"role {_either(roles)}" if roles else "any signed-in caller"
    if access.get("platform"):
        yield "a platform administrator"
    if access.get("mfa"):
        yield "second factor (MFA)"
    if access.get("key_scope"):
        yield f"or an API key with {access['key_scope']}"
    elif "api_key" in access.get("credentials", ()):
        yield "or any API key"
    elif "key_scope" in access:
        yield "people only, no API key"
    if access.get("note"):
        yield access["note"]


def _either(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def _parameter(parameter: Json, schemas: Schemas) -> Row:
    return schemas.row(
        parameter["name"],
        parameter.get("schema", {}),
        required=parameter.get("required", False),
        description=parameter.get("description", ""),
    )


def _answer(status: str, response: Json, schemas: Schemas) -> Answer:
    headers = (_parameter({"name": name, **header}, schemas) for name, header in response.get("headers", {}).items())
    phrase = HTTPStatus(int(status)).phrase if status.isdecimal() else status
    description = response.get("description", "")
    # The framework's default description says less than the status does.
    shown = phrase if description in {"", "Successful Response"} else description
    return Answer(status, shown, tuple(headers), tuple(_contents(response.get("content", {}), schemas)))


def _contents(content: Json, schemas: Schemas) -> Iterator[DocumentedBody]:
    for media_type, media in content.items():
        schema = media.get("schema", {})
        examples = [media["example"]] if "example" in media else []
        examples += [example["value"] for example in media.get("examples", {}).values() if "value" in example]
        example = next(iter(examples), None)
        described = schemas.row("", schema, required=True)
        yield DocumentedBody(media_type, described.description, tuple(schemas.rows(schema)), example)


def _is_problem(response: Json) -> bool:
    return _PROBLEM_TYPE in response.get("content", {})


def _problems(responses: Json) -> Iterator[ProblemCode]:
    for status, response in responses.items():
        for code, example in response.get("content", {}).get(_PROBLEM_TYPE, {}).get("examples", {}).items():
            yield ProblemCode(status, code, example.get("summary", ""))


def _anchor(*parts: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
