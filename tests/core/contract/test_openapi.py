"""The OpenAPI document: valid, true in its examples, complete in its problems, and silent about what is private."""

import html
import importlib
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from core_app import Api
from golden_files import golden_files
from openapi_spec_validator import OpenAPIV31SpecValidator
from published import PROBLEM_TYPE, Published

import soundmark
from soundmark.core.access.policy import POLICY
from soundmark.core.contract.catalogue import CATALOGUE
from soundmark.kit.problems import Problem

# Held by test_golden.py to what Core serves.
DOCUMENT: dict[str, Any] = json.loads(golden_files()["openapi.json"])
OPERATIONS: dict[str, dict[str, Any]] = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
# Answered before any operation is chosen, so no operation lists them.
OF_NO_OPERATION = {"method_not_allowed"}

_NOT_IMPORTED = re.compile(r"\.alembic\b|\.migrations\.|\.__main__$")


def listed_problems(operation: Mapping[str, Any]) -> dict[str, int]:
    """The codes that an operation lists, with the status that each stands under."""
    return {
        code: int(status)
        for status, response in operation["responses"].items()
        for code in response.get("content", {}).get(PROBLEM_TYPE, {}).get("examples", {})
    }


def schemas_with_examples(node: Any, where: str) -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    """Each example anywhere below `node`: where it stands, its schema, and itself."""
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


def problems_in_code() -> dict[str, list[str]]:
    """Where each code is defined, in every module of the product."""
    for module in pkgutil.walk_packages(soundmark.__path__, "soundmark."):
        # Only Alembic can load what it runs; and the program is not to be run here.
        if not _NOT_IMPORTED.search(module.name):
            importlib.import_module(module.name)
    found: dict[str, list[str]] = {}
    remaining = Problem.__subclasses__()
    while remaining:
        problem = remaining.pop()
        remaining += problem.__subclasses__()
        if problem.__module__.startswith("soundmark."):
            found.setdefault(problem.code, []).append(problem.__module__)
    return found


def text_of(page: bytes) -> str:
    words = re.sub(r"<[^>]+>", " ", re.sub(r"<style.*?</style>", "", page.decode(), flags=re.DOTALL))
    return " ".join(html.unescape(words).split())


def test_the_document_is_valid_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    assert [error.message for error in OpenAPIV31SpecValidator(DOCUMENT).iter_errors()] == []


def test_every_example_validates_against_its_own_schema() -> None:
    published = Published(DOCUMENT)
    examples = list(schemas_with_examples(DOCUMENT, "#"))
    assert len(examples) > 100
    wrong = {
        where: [error.message for error in published.validator(schema).iter_errors(example)]
        for where, schema, example in examples
        if not published.validator(schema).is_valid(example)
    }
    assert wrong == {}


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_successful_json_answer_has_an_example(name: str) -> None:
    for status, response in OPERATIONS[name]["responses"].items():
        content = response.get("content", {}).get("application/json")
        assert content is None or "example" in content, status


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_lists_its_problems_under_their_status(name: str) -> None:
    operation = OPERATIONS[name]
    listed = listed_problems(operation)
    assert listed == {code: int(CATALOGUE[code].kind) for code in listed}
    expected = {"internal_error", "database_unavailable"}
    access = operation["x-svc-access"]
    if not access["public"]:
        expected |= {"unauthenticated"}
        rule = POLICY[access["action"]]
        expected |= {"organization_not_found", "forbidden"} if rule.roles else set()
        expected |= {"mfa_required"} if rule.mfa else set()
    if "requestBody" in operation:
        expected |= {"malformed_json", "payload_too_large", "unsupported_media_type", "validation_failed"}
    assert expected <= listed.keys()


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_credential_is_asked_for_exactly_where_it_is_needed(name: str) -> None:
    operation = OPERATIONS[name]
    needed = [] if operation["x-svc-access"]["public"] else [{"bearer": []}]
    assert operation["security"] == needed
    assert ("unauthenticated" in listed_problems(operation)) == bool(needed)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_says_all_of_what_it_needs(name: str) -> None:
    """What is null is said too: a reader must not take it for forgotten."""
    access = OPERATIONS[name]["x-svc-access"]
    assert list(access) == ["action", "public", "credentials", "roles", "mfa", "key_scope", "platform", "note"]


def test_every_action_of_the_policy_has_its_operation() -> None:
    actions = {operation["x-svc-access"]["action"] for operation in OPERATIONS.values()}
    assert actions - {None} == set(POLICY)


def test_every_code_in_the_code_base_stands_in_the_catalogue_once() -> None:
    found = problems_in_code()
    assert {code: modules for code, modules in found.items() if len(modules) > 1} == {}
    # The private components have problems that only Core reads.
    public = {
        code for code, (module,) in found.items() if not module.startswith(("soundmark.audio.", "soundmark.audience."))
    }
    assert public == set(CATALOGUE)


def test_every_code_of_the_catalogue_is_listed_by_an_operation() -> None:
    listed = {code for operation in OPERATIONS.values() for code in listed_problems(operation)}
    assert listed == set(CATALOGUE) - OF_NO_OPERATION


@pytest.mark.parametrize("code", sorted(CATALOGUE))
async def test_every_code_is_explained_where_its_type_points(api: Api, code: str) -> None:
    answer = await api.other(token=None).get(f"/problems/{code}")
    problem = CATALOGUE[code]
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert f"{int(problem.kind)} {code} {problem.title}" in text_of(answer.body)
    assert problem.__doc__, "the page explains the code by its class's docstring"
    assert problem.__doc__.split("`")[0].strip() in text_of(answer.body)


async def test_a_code_that_does_not_exist_is_not_explained(api: Api) -> None:
    assert (await api.get("/problems/audio_busy")).code == "not_found"


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
    for private in ("/render", "/metrics", "/healthz", "/readyz", "audio_busy", "xop_o"):
        assert private not in text


@pytest.mark.parametrize("call", ["GET /metrics", "POST /render", "GET /v1/events", "GET /private", "POST /v1/render"])
async def test_private_routes_are_not_on_the_public_port(api: Api, call: str) -> None:
    method, path = call.split()
    assert (await api.call(method, path)).code == "not_found"
