"""Refused callers in the log: by id where the caller is known, otherwise by the digest of their address."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
import structlog
from support.api.core_client import Api
from support.api.core_settings import OPERATOR_TOKEN, core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.people import People
from support.tenancy.tenant import make_tenant

from soundmark.kit.crypto.secret import Secret

PEER, OTHER_PEER = "203.0.113.77", "198.51.100.9"


def requests(logged: list[Any], status: int) -> list[Mapping[str, Any]]:
    return [entry for entry in logged if entry["event"] == "request" and entry["status"] == status]


async def test_a_missing_credential_is_logged_with_the_digest_of_its_address(api: Api) -> None:
    with structlog.testing.capture_logs() as logged:
        for peer in (PEER, PEER, OTHER_PEER):
            assert (await api.other(token="xop_wrong", peer=peer).get("/v1/organizations")).status == 401
    one, again, other = (entry["address"] for entry in requests(logged, 401))

    assert one == again != other
    assert len(one) == 32
    assert int(one, 16) >= 0
    assert not any("caller" in entry for entry in logged)
    assert PEER not in repr(logged)
    assert "xop_wrong" not in repr(logged)


async def test_a_refused_person_is_logged_by_id_and_not_by_address(people: People, rival: Rival) -> None:
    tenant = await people.tenant_of("olga")
    member = await people.member(tenant, rival, "mia", "member")
    caller = member.api.other(token=member.api.token, peer=PEER)
    with structlog.testing.capture_logs() as logged:
        assert (await caller.post("/v1/projects", json={**tenant.query, "name": "Night"})).status == 403
    (entry,) = requests(logged, 403)

    assert (entry["caller"], len(entry["address"])) == ("mia", 32)
    assert PEER not in repr(logged)
    assert "mia@" not in repr(logged)


async def test_a_server_key_is_logged_by_its_id(api: Api) -> None:
    tenant = await make_tenant(api)
    key = await tenant.make_key(scopes=["codes:read"])
    with structlog.testing.capture_logs() as logged:
        assert (await tenant.with_key(key).api.post("/v1/codes", json=tenant.code_body())).status == 403
    (entry,) = requests(logged, 403)

    assert entry["caller"] == key["id"]
    assert key["secret"] not in repr(logged)


async def test_a_successful_request_does_not_log_its_caller(api: Api) -> None:
    with structlog.testing.capture_logs() as logged:
        assert (await api.other(peer="127.0.0.2").get("/v1/organizations")).status == 200
        assert (await api.get("/v1/projects", params={"organization_id": "org_x"})).status == 404

    assert not any({"caller", "address"} & entry.keys() for entry in logged)


@pytest.mark.parametrize("what", ["resolutions", "refusals"])
async def test_an_address_over_a_limit_is_logged_once(database_url: Secret, what: str) -> None:
    """A line for each of its requests would be another way to flood the log."""
    async with running_core(core_settings(database_url, resolve_rate_limit=2, refusal_rate_limit=2)) as api:
        stranger = api.other(token=None, peer=PEER)
        path = "/v1/resolve/brd_" + "u" * 16 if what == "resolutions" else "/v1/organizations"
        with structlog.testing.capture_logs() as logged:
            answers = await asyncio.gather(*(stranger.get(path) for _ in range(9)))

    assert [answer.status for answer in answers].count(429) == 7
    (entry,) = (entry for entry in logged if entry["event"] == f"{what}_limited")
    assert (len(entry["address"]), entry["log_level"]) == (32, "warning")
    assert PEER not in repr(logged)
    assert OPERATOR_TOKEN not in repr(logged)
