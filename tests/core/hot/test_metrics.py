"""Metrics: the counts are exactly the answers given, and nobody outside can read them."""

import asyncio
from collections import Counter

import httpx2
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families
from support.api.core_client import Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core, served_in_thread
from support.tenancy.tenant import make_tenant

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.metrics import metrics_app

UNKNOWN = "brd_" + "u" * 16
OUTCOMES = {"verified", "code_unavailable", "code_expired", "rate_limited", "refused", "failed"}


def counted(text: str) -> Counter[str]:
    """Return the resolutions by outcome, as Prometheus reads the text."""
    return Counter(
        {
            sample.labels["outcome"]: int(sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "soundmark_resolutions_total"
        }
    )


async def scraped() -> httpx2.Response:
    transport = httpx2.ASGITransport(app=metrics_app())
    async with httpx2.AsyncClient(transport=transport, base_url="http://metrics.test") as client:
        return await client.get("/metrics")


async def test_the_counter_matches_the_answers_exactly(api: Api, rival: Rival) -> None:
    tenant = await make_tenant(api)
    code, revoked, short = [await tenant.make_code(lifetime_s=life) for life in (86400, 86400, 60)]
    await tenant.revoke(revoked["xr_id"])
    before = counted((await scraped()).text)
    assert before.keys() == OUTCOMES, "every outcome is there from the start, so that a rate can be drawn"

    for _ in range(3):
        assert (await api.resolve(code["broadcast_token"])).status == 200
    assert (await api.resolve(code["broadcast_token"], proof=False)).status == 200
    for token in (UNKNOWN, "nope", revoked["broadcast_token"]):
        assert (await api.resolve(token)).code == "code_unavailable"
    assert (await api.resolve(UNKNOWN, headers={"X-Svc-Resolution-Proof": "ed25519-v2"})).status == 422
    assert (await api.call("DELETE", f"/v1/resolve/{UNKNOWN}")).status == 405
    api.clock.advance(seconds=61)
    assert (await api.resolve(short["broadcast_token"])).code == "code_expired"
    async with rival.holding("LOCK TABLE broadcasts IN ACCESS EXCLUSIVE MODE"):
        answers = await asyncio.gather(api.resolve(code["broadcast_token"]), api.resolve(UNKNOWN))
    assert {answer.status for answer in answers} == {503}

    after = counted((await scraped()).text)
    assert after - before == Counter(verified=4, code_unavailable=3, refused=2, code_expired=1, failed=2)


async def test_a_rate_limited_request_is_counted_only_as_that(database_url: Secret, audio_url: str) -> None:
    before = counted((await scraped()).text)
    async with running_core(core_settings(database_url, audio_url=audio_url, resolve_rate_limit="2")) as api:
        statuses = [(await api.resolve(UNKNOWN)).status for _ in range(5)]
    assert statuses == [404, 404, 429, 429, 429]
    assert counted((await scraped()).text) - before == Counter(code_unavailable=2, rate_limited=3)


async def test_other_requests_are_not_counted(api: Api) -> None:
    before = counted((await scraped()).text)
    for path in ("/v1/keys", "/healthz", "/v1/resolve", "/openapi.json"):
        await api.get(path)
    assert counted((await scraped()).text) == before


async def test_no_metric_names_a_token_an_address_or_a_tenant(api: Api) -> None:
    code = await (await make_tenant(api)).make_code()
    await api.other(peer="203.0.113.9").resolve(code["broadcast_token"])
    text = (await scraped()).text
    for secret in (code["broadcast_token"], code["xr_id"], code["organization_id"], "203.0.113.9"):
        assert secret not in text
    labels = {label for family in REGISTRY.collect() for sample in family.samples for label in sample.labels.items()}
    assert {name for name, _ in labels}.isdisjoint({"token", "path", "address", "organization_id"})


async def test_the_metrics_port_serves_only_metrics() -> None:
    with served_in_thread(metrics_app()) as url:
        async with httpx2.AsyncClient(base_url=url, trust_env=False) as client:
            answer = await client.get("/metrics")
            assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, "text/plain")
            assert "soundmark_resolutions_total" in answer.text
            for path in ("/", "/metrics/", "/v1/keys", "/healthz", "/metricsx"):
                assert (await client.get(path)).status_code == 404


async def test_the_public_port_has_no_metrics(api: Api) -> None:
    for path in ("/metrics", "/metrics/", "/v1/metrics"):
        assert (await api.get(path)).code == "not_found"
