"""What Core records of a request: templates, statements and calls, and nothing that is anybody's."""

import json
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind
from support.api.core_settings import OPERATOR_TOKEN, core_settings
from support.processes.fake_clock import FakeClock
from support.processes.killable import OPERATOR, running_core
from support.processes.running_apps import running_core as running_app
from support.tenancy.tenant import Tenant, make_tenant
from support.tracing.collector import running_collector
from support.tracing.recorded import Recorded, attributes_of, recording

from soundmark.kit.crypto.secret import Secret

ISSUER = "Issuer with a confidential name"
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACE = {"traceparent": f"00-{TRACE_ID}-00f067aa0ba902b7-01"}
_STOP_S = 20  # Half of what the SDK would wait.


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    """The spans of everything in this process."""
    with recording() as made:
        yield made


@pytest.fixture
async def traced(
    recorded: Recorded, database_url: Secret, audio_url: str, measuring_url: str, clock: FakeClock
) -> AsyncIterator[Tenant]:
    """An organisation at a Core whose spans are recorded."""
    settings = core_settings(database_url, audio_url=audio_url, audience_url=measuring_url)
    assert recorded.recorder is not None, "a Core that starts now is recorded"
    async with running_app(settings, clock) as api:
        yield await make_tenant(api)


def is_below(span: ReadableSpan, parent: ReadableSpan) -> bool:
    """Return whether a span is directly below another."""
    assert parent.context is not None
    return span.parent is not None and span.parent.span_id == parent.context.span_id


def below(recorded: Recorded, parent: ReadableSpan) -> set[str]:
    """Return the names of the spans directly below another."""
    return {span.name for span in recorded.spans if is_below(span, parent)}


async def test_a_request_has_its_statements_and_calls_below_it(recorded: Recorded, traced: Tenant) -> None:
    code = await traced.make_code(issuer=ISSUER)
    await traced.api.get(f"/v1/codes/{code['xr_id']}/audio", params=traced.query, headers=TRACE)
    recorded.recorder.stop()
    assert {"POST /render", "SELECT codes"} <= below(recorded, recorded.only("GET /v1/codes/{xr_id}/audio"))
    call = recorded.only("POST /render", SpanKind.CLIENT)
    assert attributes_of(call)["peer.service"] == "audio"
    assert attributes_of(call)["http.response.status_code"] == 200
    assert "POST /render" in below(recorded, call), "Audio continues the trace"


async def test_a_batch_is_below_the_request_that_it_is_for(recorded: Recorded, traced: Tenant) -> None:
    code = await traced.make_code(issuer=ISSUER)
    assert (await traced.api.resolve(code["broadcast_token"])).status == 200
    recorded.recorder.stop()
    for name, statements in {
        "POST /v1/codes": {"BEGIN", "SET", "SELECT organizations", "INSERT INTO broadcasts", "COMMIT"},
        "GET /v1/resolve/{broadcast_token}": {"SELECT broadcasts"},
    }.items():
        request = recorded.only(name)
        batches = [span for span in recorded.spans if span.name == "batch" and is_below(span, request)]
        assert any(statements <= below(recorded, batch) for batch in batches)


async def test_an_issuance_before_the_framework_is_recorded_as_by_it(recorded: Recorded, traced: Tenant) -> None:
    for media_type in ("application/json", "application/json; charset=utf-8"):  # Only the framework reads the second.
        headers = {**TRACE, "Content-Type": media_type, "X-Request-Id": "the-request"}
        content = json.dumps(traced.code_body(issuer=ISSUER))
        assert (await traced.api.post("/v1/codes", content=content, headers=headers)).status == 201
    recorded.recorder.stop()
    first, second = [span for span in recorded.spans if span.name == "POST /v1/codes"]
    assert attributes_of(first) == attributes_of(second)
    assert attributes_of(first)["http.route"] == "/v1/codes"
    assert below(recorded, first) == below(recorded, second)
    for span in (first, second):
        assert span.context is not None
        assert f"{span.context.trace_id:032x}" == TRACE_ID


async def test_no_token_name_credential_or_parameter_is_recorded(recorded: Recorded, traced: Tenant) -> None:
    code = await traced.make_code(issuer=ISSUER)
    token = code["broadcast_token"]
    integration = await traced.make_integration()
    assert (await traced.api.resolve(token)).status == 200
    assert (await traced.api.get(f"/v1/resolved/{token}")).status == 404
    query = {**traced.query, "broadcast_token": token}
    assert (await traced.api.get("/v1/codes", params=query)).status == 422
    recorded.recorder.stop()
    assert attributes_of(recorded.only("GET /v1/resolve/{broadcast_token}"))["http.response.status_code"] == 200
    text = recorded.text()
    assert "db.query.text" in text
    for secret in (token, integration["hmac_secret"], OPERATOR_TOKEN, ISSUER, "Radio Nordlicht", code["xr_id"]):
        assert secret not in text
    assert traced.organization_id not in text, "not even in what begins a transaction"


async def test_a_trusted_proxy_decides_for_core_and_core_for_its_components(
    database_url: Secret, audio_url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
    settings = core_settings(database_url, audio_url=audio_url, trusted_proxies="10.0.0.0/8")
    with recording() as recorded:
        async with running_app(settings, clock) as api:
            tenant = await make_tenant(api)
            code, key = await tenant.make_code(), await tenant.make_key()
            for peer in ("203.0.113.9", "10.0.0.1"):
                caller = api.other(token=key["secret"], peer=peer)
                audio = await caller.get(f"/v1/codes/{code['xr_id']}/audio", params=tenant.query, headers=TRACE)
                answer = await caller.resolve(code["broadcast_token"], headers=TRACE)
                assert (audio.status, answer.status) == (200, 200)
    assert [span.name for span in recorded.spans if span.kind == SpanKind.SERVER] == [
        "POST /render",
        "GET /v1/codes/{xr_id}/audio",
        "GET /v1/resolve/{broadcast_token}",
    ]


async def test_a_stopping_core_sends_its_last_spans(database_url: Secret, measuring_url: str, tenant: Tenant) -> None:
    assert tenant is not None, "Core's database is in use"
    with running_collector() as collector:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "600000"}
        with running_core(database_url, measuring_url, variables=variables) as (url, process):
            await read_organizations(url)
            process.send_signal(15)
            assert process.wait(_STOP_S) == 0
    assert ("soundmark-core", "GET /v1/organizations", TRACE_ID) in collector.spans


@pytest.mark.parametrize("is_reachable", [True, False])
async def test_a_collector_that_is_away_costs_spans_and_nothing_else(
    database_url: Secret, measuring_url: str, tenant: Tenant, is_reachable: bool
) -> None:
    """It does not answer, or nobody is there. Requests are answered, and the process stops when it is told to."""
    assert tenant is not None, "Core's database is in use"
    with running_collector(answers=False) as collector:
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url if is_reachable else "http://127.0.0.1:9",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "600",
            "OTEL_BSP_SCHEDULE_DELAY": "1",
        }
        with running_core(database_url, measuring_url, variables=variables) as (url, process):
            await read_organizations(url)
            assert not is_reachable or collector.has_request.wait(_STOP_S)
            await read_organizations(url)
            process.send_signal(15)
            assert process.wait(_STOP_S) == 0
        assert collector.spans == []


async def read_organizations(url: str) -> None:
    async with httpx2.AsyncClient(base_url=url, headers={**OPERATOR, **TRACE}) as client:
        assert (await client.get("/v1/organizations")).status_code == 200
