"""The OpenAPI 3.1 document of the public API."""

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

import soundmark
from soundmark.core.domain.codes.signed_facts import read_facts
from soundmark.core.edge.examples import CODE, EXAMPLE_KEY, ISSUED_AT
from soundmark.core.edge.operations import PUBLIC, Example, OperationRoute
from soundmark.core.hot.envelope import EnvelopeSigner, answer_body
from soundmark.core.hot.resolve import PROOF_HEADER_NAME, PROOF_VALUE
from soundmark.core.published.catalogue import CATALOGUE
from soundmark.kit.http.requests.routes import ACCESS, UNANSWERED
from soundmark.kit.http.responses.problem_documents import PROBLEM_TYPE
from soundmark.kit.http.responses.problems import Kind
from soundmark.wire.audience_event import AudienceEvent
from soundmark.wire.resolution import Resolution
from soundmark.wire.shape import Wire

_SCHEMA_REF: Final = "#/components/schemas/"
_METHODS: Final = ("get", "post", "put", "patch", "delete")
_DESCRIPTION: Final = """
Organisations issue **XR Codes**: immutable, signed, revocable records of an intent, broadcast as sound. A receiver
hears the frame, resolves its token through this API, and verifies the signed response itself.

Tenant routes take `Authorization: Bearer …`. Every failure is an RFC 9457 problem document with a stable `code`.
Bodies and query strings are closed: an unknown or repeated member or parameter is rejected, never ignored.
Every route that supports `GET` also supports `HEAD`, except the resolve route.
"""
_CREDENTIALS: Final = (
    "A person's access token (JWT) from the identity provider, or an API key (`xak_…`). If no identity provider is "
    "configured, the operator token (`xop_…`) works instead of an access token, from the same machine only. "
    "`x-svc-access` states who may use each route."
)
_LICENCE: Final = {"name": "Apache License 2.0", "identifier": "Apache-2.0"}
# Generators turn tags into module names, so tags are spelled as on the wire. Prose is British.
_TAGS: Final = [
    {
        "name": "Receivers",
        "description": "Resolve and verify a Code that was heard. No credential, account or device id.",
    },
    {
        "name": "Transparency log",
        "description": "A public log of commitments, by which anybody can check what this service has said.",
    },
    {"name": "Caller", "description": "The owner of a credential."},
    {"name": "Organizations", "description": "The tenants of the service."},
    {"name": "Projects", "description": "Parts of an organisation. Every Code belongs to a project."},
    {"name": "Exports", "description": "Sealed archives of everything in an organisation or a project."},
    {
        "name": "Leaving",
        "description": "Permanently delete an organisation or a project, and retrieve the signed certificate of its "
        "deletion.",
    },
    {"name": "Members", "description": "The people in an organisation, and their roles."},
    {"name": "Invitations", "description": "Invite people by e-mail to become members."},
    {
        "name": "API keys",
        "description": "Credentials for scripts and servers, limited to one project and to their scopes.",
    },
    {
        "name": "Audit",
        "description": "The record of all actions in an organisation, and the verification that it is "
        "complete and unaltered.",
    },
    {
        "name": "Campaigns",
        "description": "Groups of Codes with an optional schedule, which can be stopped together.",
    },
    {"name": "Codes", "description": "Issue, read, revoke and render XR Codes."},
    {
        "name": "Audience",
        "description": "Anonymous measurement of how often, and by how many receivers, a Code is heard.",
    },
    {
        "name": "Webhooks",
        "description": "Endpoints to which Core sends signed events of an organisation, and their deliveries.",
    },
    {"name": "Usage", "description": "An organisation's usage of its quotas."},
    {"name": "Billing", "description": "Offers, purchases and subscriptions."},
    {
        "name": "Billing catalogue",
        "description": "Providers, plans, offers and contracts. For platform administrators.",
    },
    {"name": "Payment webhooks", "description": "Notifications of the payment providers."},
    {"name": "Support", "description": "Tickets to the operator's support desk, and notifications from it."},
    {
        "name": "Platform",
        "description": "Settings that can be changed without a restart, and release readiness. "
        "For platform administrators.",
    },
]
_PROBLEM_NAMES: Final = {
    Kind.MISSING: "Not found",
    Kind.WRONG_TYPE: "Unsupported media type",
    Kind.LIMITED: "Too many requests",
    Kind.FAULT: "Internal error",
}
_PROBLEM_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "RFC 9457 problem document.",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string", "format": "uri", "description": "The URL of the page that explains the code."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "The stable identifier of the problem, for programs."},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "description": "Each rejected member or parameter, at most 20.",
            "items": {
                "type": "object",
                "required": ["location", "pointer", "message"],
                "properties": {
                    "location": {"enum": ["body", "query", "path", "header"]},
                    "pointer": {"type": "string", "description": "JSON Pointer (RFC 6901)."},
                    "message": {"type": "string"},
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}


def build_openapi(app: FastAPI, base_url: str) -> dict[str, Any]:
    """Return the OpenAPI document of every public route, with all its problems and an example of each response.

    Source: API v1, "Versioning" 1; contract, section 1.
    """
    document = get_openapi(
        title="Soundmark",
        version=soundmark.__version__,
        openapi_version="3.1.0",
        description=_DESCRIPTION.strip(),
        routes=app.routes,
        tags=_TAGS,
        license_info=_LICENCE,
        servers=[{"url": base_url}],
    )
    components = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        components.pop(name, None)
    components["Problem"] = _PROBLEM_SCHEMA
    document["components"]["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": _CREDENTIALS}
    }
    document["paths"]["/v1/resolve/{broadcast_token}"] = {"get": _resolve_operation(components)}
    _add_shape(components, AudienceEvent)
    document["paths"] = dict(sorted(document["paths"].items()))
    shown: dict[str, Example | None] = {"resolve": _resolution()}
    shown |= {route.name: route.example for route in app.routes if isinstance(route, OperationRoute)}
    for path in document["paths"].values():
        for method in _METHODS:
            if method in path:
                _complete(method, path[method], base_url, shown[path[method]["operationId"]])
    return document


def _complete(method: str, operation: dict[str, Any], base_url: str, example: Example | None) -> None:
    """Add what the operation's declaration implies: credential, problems, example."""
    # The framework drops members that are None, but the document must say that no API key may use the operation.
    access = operation[ACCESS] = PUBLIC | operation[ACCESS]
    operation["security"] = [] if access["public"] else [{"bearer": []}]
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _without_null(parameter["schema"])
    responses = operation["responses"]
    if "HTTPValidationError" in str(responses.get("422", {}).get("content")):
        del responses["422"]["content"]
    declared = {code for response in responses.values() for code in response.pop("x-problems", ())}
    for code in sorted((declared | set(_list_implied(method, operation))) - set(operation.pop(UNANSWERED, ()))):
        _add_problem(responses, code, base_url)
    if not responses.get("422", {"content": 1}).get("content"):
        del responses["422"]
    operation["responses"] = dict(sorted(responses.items()))
    for status, response in operation["responses"].items():
        content = response.get("content", {}).get("application/json")
        if content is not None and status.startswith("2"):
            shown = example[int(status)] if isinstance(example, Mapping) else example
            assert shown is not None, f"{operation['operationId']} has no example"
            content["example"] = json.loads(shown) if isinstance(shown, bytes) else shown.model_dump(mode="json")


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Describe an optional parameter as it is on the wire: present or absent, never null."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    plain: dict[str, Any] = {**kinds[0], **schema}
    del plain["anyOf"]
    return plain


def _list_implied(method: str, operation: dict[str, Any]) -> Iterable[str]:
    access = operation[ACCESS] = PUBLIC | operation[ACCESS]
    yield from ("internal_error", "database_unavailable")
    if not access["public"]:
        yield from ("unauthenticated", "rate_limited")
        yield from ("email_not_verified", "identity_provider_unavailable")
        if access["key_scope"]:
            yield "insufficient_scope"
        elif "api_key" not in access["credentials"]:
            yield "user_token_required"
    if access["roles"]:
        yield from ("organization_not_found", "forbidden")
    if access["platform"]:
        yield "platform_admin_required"
    if access["mfa"]:
        yield "mfa_required"
    if method != "get":  # Where no body is expected, too.
        yield from ("malformed_json", "payload_too_large", "unsupported_media_type")
    yield "validation_failed"  # Every query string is closed, even where there are no parameters.


def _add_problem(responses: dict[str, Any], code: str, base_url: str) -> None:
    problem = CATALOGUE[code]
    response = responses.setdefault(str(int(problem.kind)), {})
    name = _PROBLEM_NAMES.get(problem.kind, problem.kind.name.replace("_", " ").capitalize())
    response["description"] = name
    content = response.setdefault("content", {}).setdefault(
        PROBLEM_TYPE, {"schema": {"$ref": _SCHEMA_REF + "Problem"}, "examples": {}}
    )
    example: dict[str, Any] = {
        "type": f"{base_url}/problems/{code}",
        "title": problem.title,
        "status": int(problem.kind),
        "detail": problem.title,
        "code": code,
        "request_id": "req_b25lLXJlcXVlc3QtZXhhbX",
    }
    if code == "validation_failed":
        example["errors"] = [{"location": "body", "pointer": "/name", "message": "Field required"}]
    content["examples"][code] = {"summary": problem.title, "value": example}


def _add_shape(components: dict[str, Any], shape: type[Wire]) -> None:
    """Add the schema of a body that a route reads or writes as bytes, unseen by the framework."""
    schema = shape.model_json_schema(ref_template=_SCHEMA_REF + "{model}")
    for name, part in schema.pop("$defs").items():
        components.setdefault(name, part)
    components[shape.__name__] = schema


def _resolution() -> bytes:
    """Return the response to a receiver of the example Code."""
    facts = read_facts(CODE.payload)
    assert facts is not None, "the example is a signed Code"
    signer = EnvelopeSigner(EXAMPLE_KEY, ISSUED_AT + timedelta(hours=1))
    return answer_body(facts, signer.envelope(facts))


def _resolve_operation(components: dict[str, Any]) -> dict[str, Any]:
    """Return the operation of the hot route, which bypasses the framework and so is not declared by it."""
    _add_shape(components, Resolution)
    limit = {"schema": {"type": "string"}, "description": "draft-ietf-httpapi-ratelimit-headers"}
    return {
        ACCESS: PUBLIC,
        "tags": ["Receivers"],
        "operationId": "resolve",
        "summary": "Resolve",
        "description": (
            "Resolve a token that was heard. Unknown, revoked and malformed tokens get the same response. If the "
            "request has the header, the response includes a signed envelope. A receiver must not act without one."
        ),
        "parameters": [
            {
                "name": "broadcast_token",
                "in": "path",
                "required": True,
                "description": "The token of the frame, without `XRC1:`.",
                "schema": {"type": "string"},
                "example": "brd_bm9yZGxpY2h0LWV4",
            },
            {
                "name": PROOF_HEADER_NAME,
                "in": "header",
                "required": False,
                "description": "Request the signed envelope.",
                # Not `const`: some client generators cannot make a header with it optional.
                "schema": {"type": "string", "enum": [PROOF_VALUE.decode()]},
            },
        ],
        "responses": {
            "200": {
                "description": "A verified intent.",
                "headers": {"RateLimit": limit, "RateLimit-Policy": limit},
                "content": {"application/json": {"schema": {"$ref": _SCHEMA_REF + "Resolution"}}},
            },
            "404": {"x-problems": ["code_unavailable"]},
            "410": {"x-problems": ["code_expired"]},
            "429": {"x-problems": ["rate_limited"]},
        },
    }
