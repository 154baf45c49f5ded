"""What is recorded, who decides, and what happens where nothing can be recorded or sent."""

import logging
import sys
from collections.abc import Sequence
from typing import Any

import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client import REGISTRY
from support.tracing.recorded import Recorded, attributes_of, recording

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.asgi import Receive, Scope, Send
from soundmark.kit.http.requests.edge import HttpEdge
from soundmark.kit.tracing import recording as recording_module
from soundmark.kit.tracing import switch
from soundmark.kit.tracing.context import begin_trace, current
from soundmark.kit.tracing.recording import OtelRecorder
from soundmark.kit.tracing.spans import (
    Place,
    enter_batch,
    enter_child,
    enter_job,
    enter_request,
    is_recorded,
    is_recording,
    trace_endpoint,
)

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT_ID = "00f067aa0ba902b7"
ENTROPY = SystemEntropy()


def request(flags: str | None = None, **changes: Any) -> dict[str, Any]:
    """Return the scope of a request, in a trace with these flags."""
    headers = [] if flags is None else [(b"traceparent", f"00-{TRACE_ID}-{PARENT_ID}-{flags}".encode())]
    return {"type": "http", "method": "GET", "path": "/v1/things/secret", "headers": headers, **changes}


def record(flags: str | None, *, is_trusted: bool) -> Recorded:
    with recording() as recorded, enter_request(request(flags), ENTROPY, lambda _: is_trusted) as place:
        place.note_response("GET", "/v1/things/{id}", 200, "req_1")
    return recorded


def test_a_request_is_a_span_with_its_template_and_status() -> None:
    span = record(None, is_trusted=False).only("GET /v1/things/{id}")
    assert span.kind == SpanKind.SERVER
    assert attributes_of(span) == {
        "http.request.method": "GET",
        "http.route": "/v1/things/{id}",
        "http.response.status_code": 200,
        "soundmark.request_id": "req_1",
    }
    assert span.parent is None
    assert span.status.status_code == StatusCode.UNSET
    assert span.resource.attributes["service.name"] == "soundmark-test"


def test_a_span_has_the_id_that_the_log_has() -> None:
    with recording() as recorded, enter_request(request(), ENTROPY, lambda _: False) as place:
        place.note_response("BREW", None, 503)
    (span,) = recorded.spans
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == place.trace.trace_id
    assert place.trace.traceparent == f"00-{place.trace.trace_id}-{span.context.span_id:016x}-03"
    assert (span.name, attributes_of(span)["error.type"]) == ("_OTHER", "503"), "only names that exist, and no path"
    assert span.status.status_code == StatusCode.ERROR


def test_the_operator_names_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "radio")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    (span,) = record(None, is_trusted=False).spans
    assert span.resource.attributes["service.name"] == "radio"
    assert span.resource.attributes["deployment.environment.name"] == "test"


@pytest.mark.parametrize(
    ("sampler", "flags", "is_trusted", "is_sampled"),
    [
        ("parentbased_always_on", "00", True, False),
        ("parentbased_always_off", "01", True, True),
        ("parentbased_always_off", "01", False, False),
        ("parentbased_always_on", "00", False, True),
        ("always_off", "01", True, False),
        ("parentbased_always_off", None, True, False),
    ],
)
def test_a_trusted_caller_decides_what_is_sampled_and_a_stranger_does_not(
    monkeypatch: pytest.MonkeyPatch, sampler: str, flags: str | None, is_trusted: bool, is_sampled: bool
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    with recording() as recorded, enter_request(request(flags), ENTROPY, lambda _: is_trusted) as place:
        passed_on = place.trace.traceparent
    assert len(recorded.spans) == is_sampled
    assert passed_on.endswith("1") == is_sampled
    if flags is not None:
        assert passed_on[3:35] == TRACE_ID
    if is_sampled:
        (span,) = recorded.spans
        assert span.parent is not None
        assert f"{span.parent.span_id:016x}" == PARENT_ID


@pytest.mark.parametrize(("chance", "is_sampled"), [(1, True), (2**64 - 1, False)])
def test_a_stranger_cannot_choose_an_id_that_is_always_sampled(
    monkeypatch: pytest.MonkeyPatch, chance: int, is_sampled: bool
) -> None:
    """A sampler of a ratio takes the id for chance, so a low one would be recorded each time."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.01")
    scope = request(headers=[(b"traceparent", b"00-00000000000000000000000000000001-00f067aa0ba902b7-01")])
    with recording() as recorded:
        monkeypatch.setattr(recorded.recorder._chance, "generate_trace_id", lambda: chance)
        with enter_request(scope, ENTROPY, lambda _: False):
            pass
    assert len(recorded.spans) == is_sampled


def test_what_happens_below_follows_and_has_its_parent() -> None:
    with recording() as recorded, enter_job("act", "consumer", ENTROPY, None) as job:
        assert is_recorded()
        with enter_child("POST /render", "client", {"url.template": "/render"}):
            inner = current.get()
        assert current.get() is job.trace
    child, parent = recorded.spans
    assert (child.name, child.kind, attributes_of(child)) == (
        "POST /render",
        SpanKind.CLIENT,
        {"url.template": "/render"},
    )
    assert parent.context is not None
    assert child.parent is not None
    assert child.parent.span_id == parent.context.span_id
    assert inner is not None
    assert inner.trace_id == job.trace.trace_id


def test_nothing_is_recorded_below_what_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with recording() as recorded, enter_job("act", "consumer", ENTROPY, None) as job:
        with enter_child("POST /render", "client", {}) as child:
            child.note({"a": 1})
            assert current.get() is job.trace
        with enter_batch("batch", [job.trace, None]):
            assert current.get() is job.trace
    assert recorded.spans == []


def test_a_batch_is_below_its_first_trace_and_linked_to_the_others() -> None:
    with recording() as recorded:
        with enter_job("one", "consumer", ENTROPY, None) as one, enter_job("two", "consumer", ENTROPY, None) as two:
            pass
        with enter_batch("batch", [None, begin_trace(ENTROPY), one.trace, two.trace]) as batch:
            assert isinstance(batch, Place)
    span = recorded.only("batch")
    assert batch.trace.trace_id == one.trace.trace_id
    assert [f"{link.context.trace_id:032x}" for link in span.links] == [two.trace.trace_id]
    assert attributes_of(span) == {"soundmark.batch_size": 4}


def test_an_error_is_recorded_by_its_name_alone() -> None:
    def fail() -> None:
        with enter_job("act", "consumer", ENTROPY, None):
            raise LookupError("confidential")

    with recording() as recorded, pytest.raises(LookupError):
        fail()
    assert attributes_of(recorded.only("act")) == {"error.type": "LookupError"}
    assert "confidential" not in recorded.text()


async def test_a_hot_endpoint_is_wrapped_only_while_spans_are_recorded() -> None:
    async def endpoint(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> Any:
        raise NotImplementedError

    async def send(_message: Any) -> None:
        pass

    assert trace_endpoint(endpoint, "/v1/{token}", ENTROPY, lambda _: False) is endpoint
    with recording() as recorded:
        traced = trace_endpoint(endpoint, "/v1/{token}", ENTROPY, lambda _: False)
        await traced(request(path="/v1/brd_secret"), receive, send)
    assert attributes_of(recorded.only("GET /v1/{token}"))["http.response.status_code"] == 404
    assert "brd_secret" not in recorded.text()


async def test_probes_are_not_recorded() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> Any:
        raise NotImplementedError

    async def send(_message: Any) -> None:
        pass

    with recording() as recorded:
        await HttpEdge(app, "http://edge.test", ENTROPY)(request(path="/readyz"), receive, send)
    assert recorded.spans == []


class Broken(SpanExporter):
    """An exporter that loses spans, in the ways that there are."""

    def __init__(self) -> None:
        self.results: list[SpanExportResult | Exception] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        assert spans, "nothing is exported of nothing"
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


def count_lost() -> float:
    return REGISTRY.get_sample_value("soundmark_spans_lost_total") or 0.0


def test_lost_spans_are_counted_and_an_outage_is_logged_once() -> None:
    exporter, before = Broken(), count_lost()
    exporter.results = [SpanExportResult.FAILURE, LookupError("secret"), SpanExportResult.SUCCESS]
    recorder = OtelRecorder(exporter, service="soundmark-test", version="0")
    with structlog.testing.capture_logs() as logged:
        for _ in range(3):
            place = recorder.begin("act", "internal", begin_trace(ENTROPY), "new")
            assert place is not None
            place.span.end(None)
            recorder._processor.force_flush()
    recorder.stop()
    assert count_lost() - before == 2
    assert [line["event"] for line in logged if line["log_level"] != "debug"] == ["spans_lost", "spans_exported_again"]
    assert "secret" not in repr(logged)


def make(environ: dict[str, str]) -> tuple[bool, list[str]]:
    """Return whether spans are recorded in this environment, and why not."""
    with structlog.testing.capture_logs() as logged, switch.recording_spans("soundmark-core", "0", environ):
        is_on = is_recording()
    assert not is_recording()
    return is_on, [line["reason"] for line in logged if line["event"] == "tracing_off"]


ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    ("environ", "is_on", "reasons"),
    [
        ({}, False, []),
        ({"OTEL_SERVICE_NAME": "soundmark"}, False, []),
        (ENDPOINT, True, []),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9/v1/traces"}, True, []),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True, []),
        ({"OTEL_TRACES_EXPORTER": "none", **ENDPOINT}, False, []),
        ({"OTEL_SDK_DISABLED": "TRUE", **ENDPOINT}, False, []),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, False, ["OTEL_TRACES_EXPORTER must be otlp or none"]),
        (
            {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", **ENDPOINT},
            False,
            ["OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf"],
        ),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", **ENDPOINT}, True, []),
    ],
)
def test_the_standard_variables_switch_it_on(environ: dict[str, str], is_on: bool, reasons: list[str]) -> None:
    level = logging.getLogger("opentelemetry.exporter").level
    assert make(environ) == (is_on, reasons)
    logging.getLogger("opentelemetry.exporter").setLevel(level)


def test_without_the_extra_a_process_says_so_and_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, recording_module.__name__)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert make(ENDPOINT) == (False, ["the extra soundmark[otel] is not installed"])
    assert recording_module.__name__ not in sys.modules
