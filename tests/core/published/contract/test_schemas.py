"""The published JSON Schemas: valid, closed, and matching what the server sends."""

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from golden_files import golden_files
from jsonschema_rs import Draft202012Validator, meta
from support.api.core_client import Api
from support.api.core_settings import BASE_URL
from support.api.published_contract import make_validator
from support.tenancy.tenant import make_tenant

NAMES = [
    "xr-code-v1",
    "xr-code-issued-v1",
    "xr-code-detail-v1",
    "xr-resolution-v1",
    "svc-project-archive-v1",
    "svc-organization-archive-v1",
]
OPEN = {"resource"}  # The intent's resource may have any members.
OPTIONAL = {("resolution_proof",)}


async def schema(api: Api, name: str) -> dict[str, Any]:
    answer = await api.other(token=None).get(f"/schemas/{name}.json")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/schema+json")
    found: dict[str, Any] = answer.json
    return found


async def validator(api: Api, name: str) -> Draft202012Validator:
    return make_validator(await schema(api, name))


def list_formats(value: Any) -> Iterator[str]:
    """Yield the `format` of every schema in a document. An archive has a member of this name, with a constant."""
    if isinstance(value, Mapping):
        if isinstance(value.get("format"), str) and "type" in value:
            yield value["format"]
        for member in value.values():
            yield from list_formats(member)
    elif isinstance(value, list):
        for member in value:
            yield from list_formats(member)


def test_every_format_of_our_documents_is_checked() -> None:
    formats = {found for text in golden_files().values() for found in list_formats(json.loads(text))}
    accepted = {name for name in formats if make_validator({"format": name}).is_valid("no such text")}
    assert len(formats) > 3
    assert accepted == {"binary"}, "it says nothing of a text"


async def sent(api: Api) -> list[tuple[str, Any]]:
    """Return what the server sends for each published schema: the schema's name and the value."""
    tenant = await make_tenant(api)
    code, revoked = await tenant.make_code(), await tenant.make_code()
    token, path = code["broadcast_token"], f"/v1/codes/{code['xr_id']}"
    active = (await api.get(path, params=tenant.query)).json
    return [
        ("xr-code-issued-v1", code),
        ("xr-code-v1", code["signed_code"]),
        ("xr-code-v1", active["signed_code"]),
        ("xr-code-detail-v1", active),
        ("xr-code-detail-v1", (await tenant.revoke(revoked["xr_id"])).json),
        ("xr-resolution-v1", (await api.resolve(token)).json),
        ("xr-resolution-v1", (await api.resolve(token, proof=False)).json),
    ]


def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path to every member of every closed object in `value`."""
    if isinstance(value, dict) and path[-1:] != ("resource",):
        for name, member in value.items():
            yield (*path, name)
            yield from places(member, (*path, name))


def closed_objects(node: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every schema of an object, except conditions, which only narrow one."""
    if isinstance(node, list):
        for child in node:
            yield from closed_objects(child)
    elif isinstance(node, dict):
        if node.get("type") == "object":
            yield node
        for name, child in node.items():
            if name not in OPEN | {"if", "then", "else", "examples"}:
                yield from closed_objects(child)


def changed(value: Any, path: tuple[str, ...], change: Any) -> Any:
    """Return a copy of `value` in which `change(parent, name)` was applied to one member."""
    altered = parent = copy.deepcopy(value)
    for step in path[:-1]:
        parent = parent[step]
    change(parent, path[-1])
    return altered


def remove(parent: dict[str, Any], name: str) -> None:
    del parent[name]


def retype(parent: dict[str, Any], name: str) -> None:
    parent[name] = []  # No member is a list.


def add_beside(parent: dict[str, Any], name: str) -> None:
    parent[f"{name}_of_old"] = parent[name]


@pytest.mark.parametrize("name", NAMES)
async def test_a_schema_is_valid_2020_12_and_knows_its_own_address(api: Api, name: str) -> None:
    published = await schema(api, name)
    meta.validate(published)
    assert published["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert published["$id"] == f"{BASE_URL}/schemas/{name}.json"


@pytest.mark.parametrize("name", NAMES)
async def test_every_object_of_a_schema_is_closed(api: Api, name: str) -> None:
    objects = list(closed_objects(await schema(api, name)))
    assert len(objects) >= 3
    assert all(part["additionalProperties"] is False for part in objects)


async def test_the_values_that_the_server_sends_validate(api: Api) -> None:
    for name, value in await sent(api):
        (await validator(api, name)).validate(value)


@pytest.mark.parametrize("change", [remove, retype, add_beside], ids=lambda change: change.__name__)
async def test_altered_values_do_not_validate(api: Api, change: Any) -> None:
    """Every member of every closed object in turn."""
    for name, value in await sent(api):
        checks = await validator(api, name)
        paths = [path for path in places(value) if not (change is remove and path in OPTIONAL)]
        assert len(paths) > 6
        accepted = [path for path in paths if checks.is_valid(changed(value, path, change))]
        assert accepted == [], name


async def test_a_value_out_of_its_bounds_is_refused(api: Api, subtests: pytest.Subtests) -> None:
    for name, path, value in [
        ("xr-code-v1", ("version",), 2),
        ("xr-code-v1", ("xr_id",), "xr_short"),
        ("xr-code-v1", ("xr_id",), "XR_" + "a" * 22),
        ("xr-code-v1", ("expires_at",), "tomorrow"),
        ("xr-code-v1", ("token_digest",), "a" * 42),
        ("xr-code-v1", ("signature",), "a" * 85),
        ("xr-code-v1", ("signature",), "a" * 85 + "="),
        ("xr-code-v1", ("intent", "type"), ""),
        ("xr-code-v1", ("intent", "action"), "a" * 161),
        ("xr-code-v1", ("key_id",), ""),
        ("xr-code-issued-v1", ("status",), "revoked"),
        ("xr-code-issued-v1", ("broadcast_frame",), "XRC2:brd_" + "a" * 16),
        ("xr-code-issued-v1", ("revoked_at",), "2026-11-20T10:00:00.000Z"),
        ("xr-code-detail-v1", ("status",), "gone"),
        ("xr-code-detail-v1", ("signed_code", "intent", "resource"), None),
        ("xr-resolution-v1", ("signature_status",), "unverified"),
        ("xr-resolution-v1", ("resolution_proof", "version"), 2),
        ("xr-resolution-v1", ("resolution_proof", "payload"), "a" * 63),
        ("xr-resolution-v1", ("resolution_proof", "payload"), "a" * 65537),
        ("xr-resolution-v1", ("resolution_proof", "signature"), "a" * 87),
        ("xr-resolution-v1", ("resolution_proof",), None),
        ("xr-resolution-v1", ("policy", "audience_measurement"), True),
        ("xr-resolution-v1", ("policy", "audience_integration_id"), "int_12345678"),
    ]:
        with subtests.test(name=name, path=path, value=value):
            checks = await validator(api, name)
            good = dict(reversed(await sent(api)))[name]
            assert checks.is_valid(good)
            assert not checks.is_valid(changed(good, path, lambda parent, member: parent.update({member: value})))  # noqa: B023 - called at once


async def test_a_measured_resolution_needs_its_proof_and_the_integration(api: Api) -> None:
    """The server does not send one yet; its shape is already published."""
    checks = await validator(api, "xr-resolution-v1")
    plain = dict(await sent(api))["xr-resolution-v1"]
    proof = {
        "proof_id": "prf_" + "p" * 22,
        "xr_id": plain["xr_id"],
        "integration_id": "int_12345678",
        "campaign_id": None,
        "issued_at": "2026-11-20T10:00:00.000Z",
        "expires_at": "2026-11-20T10:05:00.000Z",
        "key_id": "sig_1",
        "signature": "s" * 86,
    }
    policy = {"audience_measurement": True, "audience_integration_id": "int_12345678"}
    measured = {**plain, "policy": policy, "measurement_proof": proof}
    assert checks.is_valid(measured)
    without_id = {name: value for name, value in proof.items() if name != "proof_id"}
    assert checks.is_valid({**measured, "measurement_proof": without_id})
    assert not checks.is_valid({**plain, "policy": policy})
    assert not checks.is_valid({**plain, "measurement_proof": proof})
    assert not checks.is_valid({**measured, "policy": {**policy, "audience_integration_id": None}})
    assert not checks.is_valid({**measured, "measurement_proof": {**proof, "country": "TN"}})
    assert not checks.is_valid({**measured, "measurement_proof": {**proof, "proof_id": None}})


async def test_an_unknown_schema_is_not_found(api: Api) -> None:
    assert (await api.get("/schemas/xr-code-v2.json")).code == "not_found"
