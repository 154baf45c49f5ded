"""The OpenAPI document: valid, with true examples, complete in its problems, and without private routes."""

import html
import importlib
import importlib.util
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from golden_files import golden_files
from support.api.core_client import Api
from support.api.published_contract import PROBLEM_TYPE, PublishedContract

import soundmark
import soundmark.audience.features
from soundmark.core.access.policy import POLICY
from soundmark.core.published.catalogue import CATALOGUE
from soundmark.kit.http.responses.problems import Problem

# test_golden.py compares it with what Core serves.
DOCUMENT: dict[str, Any] = json.loads(golden_files()["openapi.json"])
OPERATIONS: dict[str, dict[str, Any]] = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
# Raised before any operation is chosen, so no operation lists them.
OF_NO_OPERATION = {"method_not_allowed"}
# The sender signs these, so they need no credential, but a missing signature is refused with the same problem.
SIGNED = {
    "POST /v1/events": "X-Svc-Signature",
    "POST /v1/billing/webhooks/card": "Stripe-Signature",
    "POST /v1/support/webhooks/desk": "X-Support-Signature",
}
# The deadline belongs to the guard of the private components; Core has none.
PRIVATE_COMPONENTS = ("soundmark.audience", "soundmark.kit.deadline")

_NOT_IMPORTED = re.compile(r"\.alembic\b|\.migrations\.|\.__main__$")


def listed_problems(operation: Mapping[str, Any]) -> dict[str, int]:
    """Return the codes that an operation lists, with the status of each."""
    return {
        code: int(status)
        for status, response in operation["responses"].items()
        for code in response.get("content", {}).get(PROBLEM_TYPE, {}).get("examples", {})
    }


def schemas_with_examples(node: Any, where: str) -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    """Yield each example anywhere below `node`: its place, its schema, and its value."""
    if isinstance(node, list):
        for number, child in enumerate(node):
            yield from schemas_with_examples(child, f"{where}/{number}")
    if not isinstance(node, dict):
        return
    schema = node.get("schema", node)
    if "example" in node:
        yield f"{where}/example", schema, node["example"]
    examples = node.get("examples", ())
    if isinstance(examples, list):
        yield from ((f"{where}/examples/{number}", schema, value) for number, value in enumerate(examples))
    elif examples:
        yield from ((f"{where}/examples/{name}", schema, entry["value"]) for name, entry in examples.items())
    for name, child in node.items():
        if name not in {"example", "examples"}:
            yield from schemas_with_examples(child, f"{where}/{name}")


def component_of(problem: type[Problem]) -> str:
    """Return the component that raises it: a private one, or Core, which shares the rest with all."""
    private = (name for name in PRIVATE_COMPONENTS if f"{problem.__module__}.".startswith(f"{name}."))
    return next(private, "soundmark.core")


def problems_in_code() -> dict[str, list[type[Problem]]]:
    """Return every problem that a module of the product defines, by its component."""
    for module in pkgutil.walk_packages(soundmark.__path__, "soundmark."):
        # Only Alembic can load its migrations; and the program must not run here.
        if not _NOT_IMPORTED.search(module.name):
            importlib.import_module(module.name)
    found: dict[str, list[type[Problem]]] = {}
    remaining = Problem.__subclasses__()
    while remaining:
        problem = remaining.pop()
        remaining += problem.__subclasses__()
        if problem.__module__.startswith("soundmark.") and "code" in vars(problem):
            found.setdefault(component_of(problem), []).append(problem)
    return found


def text_of(page: bytes) -> str:
    words = re.sub(r"<[^>]+>", " ", re.sub(r"<style.*?</style>", "", page.decode(), flags=re.DOTALL))
    return " ".join(html.unescape(words).split())


def test_the_document_is_valid_openapi_3_1(tmp_path: Path) -> None:
    """In a process of its own: importing the validator would take every worker two seconds."""
    assert DOCUMENT["openapi"].startswith("3.1.")
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(DOCUMENT))
    command = [sys.executable, "-m", "openapi_spec_validator", "--schema", "3.1", "--validation-errors", "all"]
    done = subprocess.run([*command, str(file)], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{file}: OK\n", "")


def test_every_tag_is_declared_once_described_and_used() -> None:
    """A tag that is not declared has no description and stands at the end of the reference and of generated clients."""
    documents = [json.loads(text) for name, text in golden_files().items() if name.endswith(".json")]
    published = [document for document in documents if "openapi" in document]
    assert DOCUMENT in published
    for document in published:
        operations = [operation for methods in document["paths"].values() for operation in methods.values()]
        declared = [tag["name"] for tag in document["tags"]]
        assert sorted(declared) == sorted({tag for operation in operations for tag in operation["tags"]})
        assert all(tag["description"] for tag in document["tags"])
        assert all(len(operation["tags"]) == 1 for operation in operations)


def test_every_example_validates_against_its_own_schema() -> None:
    published = PublishedContract(DOCUMENT)
    examples = list(schemas_with_examples(DOCUMENT, "#"))
    assert len(examples) > 100
    wrong = {
        where: [error.message for error in published.validator(schema).iter_errors(example)]
        for where, schema, example in examples
        if not published.validator(schema).is_valid(example)
    }
    assert wrong == {}


def test_every_successful_json_response_has_an_example() -> None:
    without = [
        f"{name}: {status}"
        for name, operation in OPERATIONS.items()
        for status, response in operation["responses"].items()
        if "example" not in response.get("content", {}).get("application/json", {"example": None})
    ]
    assert without == []


# Notifications are judged by what they name: their query is never refused, nor is the local provider's body.
_OF_ANY_BODY = {"malformed_json", "unsupported_media_type", "validation_failed"}
UNANSWERED = {
    "POST /v1/billing/webhooks/card": {"validation_failed"},
    "POST /v1/billing/webhooks/local": _OF_ANY_BODY,
    "POST /v1/billing/webhooks/local/{secret}": _OF_ANY_BODY,
}


def expected_problems(operation: Mapping[str, Any]) -> set[str]:
    """Return the problems that follow from what the operation declares."""
    expected = {"internal_error", "database_unavailable"}
    access = operation["x-svc-access"]
    if not access["public"]:
        expected |= {"unauthenticated"}
        rule = POLICY[access["action"]]
        expected |= {"organization_not_found", "forbidden"} if rule.roles else set()
        expected |= {"mfa_required"} if rule.mfa else set()
    if "requestBody" in operation:
        expected |= {"malformed_json", "payload_too_large", "unsupported_media_type", "validation_failed"}
    return expected


def test_every_operation_lists_its_problems_under_their_status() -> None:
    for name, operation in OPERATIONS.items():
        listed = listed_problems(operation)
        assert listed == {code: int(CATALOGUE[code].kind) for code in listed}, name
        assert expected_problems(operation) - UNANSWERED.get(name, set()) <= listed.keys(), name
        assert not UNANSWERED.get(name, set()) & listed.keys(), name


def test_an_operation_requires_a_credential_unless_it_is_public() -> None:
    for name, operation in OPERATIONS.items():
        required = [] if operation["x-svc-access"]["public"] else [{"bearer": []}]
        assert operation["security"] == required, name
        assert ("unauthenticated" in listed_problems(operation)) == (bool(required) or name in SIGNED), name


@pytest.mark.parametrize("name", sorted(SIGNED))
def test_a_signed_operation_documents_its_signature(name: str) -> None:
    """Contract, sections 6 and 7: the sender's signature replaces a credential."""
    required = {each["name"]: each["required"] for each in OPERATIONS[name]["parameters"] if each["in"] == "header"}
    assert required[SIGNED[name]] is True
    access = OPERATIONS[name]["x-svc-access"]
    assert access["public"]
    assert SIGNED[name] in access["note"]


def test_every_operation_declares_every_part_of_its_access() -> None:
    """Null members are included, so that a reader does not think they were forgotten."""
    members = ["action", "public", "credentials", "roles", "mfa", "key_scope", "platform", "note"]
    assert [name for name, operation in OPERATIONS.items() if list(operation["x-svc-access"]) != members] == []


def test_every_action_of_the_policy_has_its_operation() -> None:
    actions = {operation["x-svc-access"]["action"] for operation in OPERATIONS.values()}
    assert actions - {None} == set(POLICY)


def test_every_code_in_the_code_base_is_in_the_catalogue_once() -> None:
    found = problems_in_code()
    for component, problems in found.items():
        codes = [problem.code for problem in problems]
        assert sorted(set(codes)) == sorted(codes), f"{component} defines a code twice"
    assert {problem.code for problem in found["soundmark.core"]} == set(CATALOGUE)


def test_a_problem_that_core_passes_on_is_defined_once_for_both() -> None:
    """Its code crosses the private channel. Core reads no other code of a private component."""
    found = problems_in_code()
    own = {problem.code for component in PRIVATE_COMPONENTS for problem in found[component]}
    assert own == {"deadline_passed", "operation_conflict", "tenant_purged"}
    assert own & set(CATALOGUE) == set()


def test_every_code_of_the_catalogue_is_listed_by_an_operation() -> None:
    listed = {code for operation in OPERATIONS.values() for code in listed_problems(operation)}
    assert listed == set(CATALOGUE) - OF_NO_OPERATION


async def test_every_code_is_explained_where_its_type_points(api: Api) -> None:
    for code, problem in CATALOGUE.items():
        answer = await api.other(token=None).get(f"/problems/{code}")
        assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert f"{int(problem.kind)} {code} {problem.title}" in text_of(answer.body)
        assert problem.__doc__, f"the page explains {code} with the docstring of its class"
        assert problem.__doc__.split("`")[0].strip() in text_of(answer.body)


async def test_an_unknown_code_has_no_explanation(api: Api) -> None:
    assert (await api.get("/problems/deadline_passed")).code == "not_found"


async def test_the_reference_names_every_operation_and_every_problem_of_it(api: Api) -> None:
    page = (await api.other(token=None).get("/docs")).body
    text = text_of(page)
    for name, operation in OPERATIONS.items():
        assert f"{operation['summary']} {name}" in text
    for code in set(CATALOGUE) - OF_NO_OPERATION:
        assert f"/problems/{code}".encode() in page


def test_only_the_public_api_is_in_the_document() -> None:
    assert all(path.startswith("/v1/") for path in DOCUMENT["paths"])
    text = json.dumps(DOCUMENT)
    for private in ("/render", "/metrics", "/healthz", "/readyz", "deadline_passed", "operation_conflict", "xop_o"):
        assert private not in text
    assert private_operations() & OPERATIONS.keys() == {"GET /v1/usage"}, "this one Core has too, for its own usage"


def private_operations() -> set[str]:
    """Return every route of Audience that needs the internal credential."""
    features = soundmark.audience.features
    modules = [
        importlib.import_module(f"{module.name}.routes")
        for module in pkgutil.iter_modules(features.__path__, f"{features.__name__}.")
        if importlib.util.find_spec(f"{module.name}.routes")
    ]
    routes = [route for module in modules for route in module.router.routes]
    return {f"{method} {route.path}" for route in routes for method in route.methods}


PRIVATE_CALLS = ["GET /metrics", "POST /render", "GET /private", "POST /v1/render"]


async def test_private_routes_are_not_on_the_public_port(api: Api, subtests: pytest.Subtests) -> None:
    for call in [*PRIVATE_CALLS, *sorted(private_operations() - OPERATIONS.keys())]:
        with subtests.test(call=call):
            method, path = re.sub(r"{\w+}", "int_c3R1ZGlvLW1lYXN1cmVtZW50", call).split()
            assert (await api.call(method, path)).code == "not_found"


async def test_events_can_only_be_delivered(api: Api) -> None:
    """The path is public, on Audience and through Core, but has no method that reads."""
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        refused = await api.call(method, "/v1/events")
        assert (refused.status, refused.code, refused.headers["allow"]) == (405, "method_not_allowed", "POST")


def test_inside_an_organisation_query_and_header_may_name_it(subtests: pytest.Subtests) -> None:
    """Contract, section 1: always, and nowhere else. The same words describe it everywhere."""
    for name in sorted(OPERATIONS):
        with subtests.test(name=name):
            operation = OPERATIONS[name]
            places = {(each["name"], each["in"]): each["required"] for each in operation.get("parameters", ())}
            query, header = ("organization_id", "query"), ("X-Svc-Organization-Id", "header")
            if not operation["x-svc-access"]["roles"]:
                assert not {query, header} & places.keys()
                return
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            shape = DOCUMENT["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], {})
            elsewhere = ("organization_id", "path") in places or "organization_id" in shape.get("properties", {})
            either = name in {"GET /v1/codes", "POST /v1/codes/{xr_id}/revoke"}
            assert (places[query], places[header]) == (not elsewhere and not either, False)


def test_every_body_documents_its_maximum_size(subtests: pytest.Subtests) -> None:
    """Contract, section 1."""
    for name in sorted(name for name in OPERATIONS if "requestBody" in OPERATIONS[name]):
        with subtests.test(name=name):
            path = name.split()[1]
            is_issuance = path in {"/v1/codes", "/v1/codes/batch", "/v1/codes/recover", "/v1/codes/batch/recover"}
            is_measurement = path.endswith("/decode-certificates")
            is_notification = "/webhooks/" in path
            is_large = is_issuance or is_measurement or is_notification
            largest = "1,024 KiB" if is_large else "16 KiB" if path == "/v1/events" else "64 KiB"
            assert OPERATIONS[name]["requestBody"]["description"] == f"At most {largest}."


def test_no_parameter_is_published_as_null() -> None:
    """A query or a header cannot be null: an optional one is absent."""
    schemas = [each["schema"] for operation in OPERATIONS.values() for each in operation.get("parameters", ())]
    assert {"type": "null"} not in [kind for schema in schemas for kind in schema.get("anyOf", ())]


def test_an_integration_is_named_exactly_where_an_audience_is_measured(subtests: pytest.Subtests) -> None:
    for choice, is_valid in [
        ({"enabled": True, "integration_id": "int_12345678"}, True),
        ({"enabled": False}, True),
        ({"enabled": False, "integration_id": None}, True),
        ({"enabled": False, "integration_id": "int_12345678"}, False),
        ({"enabled": True}, False),
        ({"enabled": True, "integration_id": None}, False),
        ({"integration_id": None}, False),
    ]:
        with subtests.test(choice=choice, is_valid=is_valid):
            schema = DOCUMENT["components"]["schemas"]["AudienceChoice"]
            assert PublishedContract(DOCUMENT).validator(schema).is_valid(choice) == is_valid


def test_a_name_has_its_length_without_the_spaces_around_it(subtests: pytest.Subtests) -> None:
    for name, is_valid in [
        (" Radio ", True),
        ("a", True),
        (" " + "a" * 120 + " ", True),
        ("a" + " " * 118 + "a", True),
        ("", False),
        (" ", False),
        ("\u3000", False),
        ("a\nb", False),
        ("a" * 121, False),
        ("a" + " " * 119 + "a", False),
    ]:
        with subtests.test(name=name, is_valid=is_valid):
            schema = DOCUMENT["components"]["schemas"]["CreateOrganization"]
            assert PublishedContract(DOCUMENT).validator(schema).is_valid({"name": name}) == is_valid
