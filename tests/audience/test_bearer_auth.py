"""Access to Audience: only for Core, with the credential; and what Audience's database role may read."""

import itertools

import psycopg
import pytest
from support.api.raw_requests import METHODS, send_raw
from support.audience.client import (
    CREDENTIAL,
    AudienceApi,
    audience_settings,
    integration_body,
    list_private_routes,
    new_operation_id,
    running_audience,
)
from support.database.rival import Rival
from support.processes.running_apps import served_in_thread

from soundmark.audience.app import create_app
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.server.serve import CannotStart

WRONG = [None, "", "wrong-credential-altogether", CREDENTIAL + "x", f"{CREDENTIAL},{CREDENTIAL}"]


async def test_every_private_route_needs_the_credential(audience: AudienceApi) -> None:
    found = list_private_routes()
    assert len(found) >= 14
    for (method, path), credential in itertools.product([*found, ("GET", "/v1/nowhere")], WRONG):
        stranger = AudienceApi(audience.app, audience.clock, credential)
        answer = await stranger.call(method, path, content=b"{")
        assert (answer.status, answer.json["code"]) == (401, "unauthenticated"), (method, path, credential)
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_no_method_passes_without_the_credential(audience: AudienceApi) -> None:
    paths = sorted({path for _, path in list_private_routes()} | {"/", "/v1/nowhere", "/metrics", "/openapi.json"})
    for path, method, credential in itertools.product(paths, METHODS, (None, "wrong-credential-altogether")):
        stranger = AudienceApi(audience.app, audience.clock, credential)
        answer = await stranger.call(method, path, content=b"{}")
        assert answer.status == 401, (method, path, credential)
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_no_spelling_of_a_path_passes_without_the_credential(audience_url: Secret) -> None:
    """The open paths, health and events, are no way around it."""
    with served_in_thread(create_app(audience_settings(audience_url))) as url:
        for begin, middle in itertools.product(
            (b"/healthz", b"/readyz", b"/v1/events"),
            (b"/..", b"/%2e%2e", b"/..%2f..", b"/.%2e", b";", b"%00", b"%2f", b"/", b"//", b"\\..", b"%3f", b"%23"),
        ):
            target = begin + middle + b"/v1/usage?organization_id=org_x&month=2026-11"
            assert send_raw(url, target).status in {400, 401}, target
        for target in (b"//healthz", b"/HEALTHZ", b"/healthz/", b"/healthz%20", b"/%2fhealthz", b"/x/../healthz"):
            assert send_raw(url, target).status in {400, 401}, target
        assert send_raw(url, b"/healthz").status == 200


BEARER = ("authorization", f"Bearer {CREDENTIAL}")


@pytest.mark.parametrize(
    "authorization",
    [
        [("authorization", f"Basic {CREDENTIAL}")],
        [("authorization", CREDENTIAL)],
        [("authorization", "Bearer")],
        [BEARER, BEARER],
        [BEARER, ("authorization", "Bearer x")],
    ],
)
async def test_the_credential_is_a_bearer_in_one_header(
    audience: AudienceApi, audience_rival: Rival, authorization: list[tuple[str, str]]
) -> None:
    answer = await audience.call(
        "POST",
        "/v1/integrations",
        operation_id=new_operation_id(),
        json=integration_body(),
        headers=authorization,
    )

    assert answer.status == 401
    assert await audience_rival.rows("SELECT FROM integrations") == []


async def test_either_of_a_pair_is_accepted(audience_url: Secret) -> None:
    pair = f"{'first' * 4},{'other' * 4}"
    async with running_audience(audience_settings(audience_url, audience_credential=pair)) as api:
        for credential, status in (("first" * 4, 200), ("other" * 4, 200), (pair, 401)):
            one = AudienceApi(api.app, api.clock, credential)
            query = {"organization_id": "org_x", "month": "2026-11"}
            assert (await one.call("GET", "/v1/usage", params=query)).status == status


async def test_private_routes_are_not_published(audience: AudienceApi) -> None:
    for path in ("/openapi.json", "/docs", "/redoc"):
        assert (await audience.call("GET", path)).status == 404


async def test_responses_are_not_cached(audience: AudienceApi) -> None:
    answer = await audience.create()

    assert answer.headers["cache-control"] == "no-store"


async def test_the_role_of_audience_cannot_read_the_database_of_core(
    migrated_audience_url: Secret, migrated_url: Secret
) -> None:
    """Nor the other way round: the password of one component gives access to that component's data only."""
    databases = {"audience": "audience_under_test", "core": "core_under_test"}
    urls = {"audience": migrated_audience_url.reveal(), "core": migrated_url.reveal()}
    for role, other in (("audience", "core"), ("core", "audience")):
        url = urls[role].rpartition("/")[0] + "/" + databases[other]
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(url)


async def test_with_another_master_key_it_does_not_start(audience_url: Secret) -> None:
    """It would refuse every event as if its publisher had the wrong secret."""
    with pytest.raises(CannotStart, match="master key"):
        async with running_audience(audience_settings(audience_url, master_key="B" * 42 + "A")):
            pass
