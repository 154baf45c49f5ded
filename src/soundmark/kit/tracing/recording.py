"""Spans by OpenTelemetry's SDK, which nothing else imports. `kit.tracing.switch` loads us where the extra is installed.

Nothing global of theirs is set, so no library records anything through us.
"""

import logging
import threading
from collections.abc import Iterable, Sequence
from typing import Final

import structlog
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)
from opentelemetry.trace import Span as OtelSpan
from prometheus_client import Counter

from soundmark.kit.tracing.context import RANDOM, SAMPLED, TraceContext
from soundmark.kit.tracing.spans import Attributes, Kind, Origin

_KINDS: Final[dict[Kind, SpanKind]] = {
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "consumer": SpanKind.CONSUMER,
    "internal": SpanKind.INTERNAL,
}
# How long a stopping process waits for its last spans to be sent.
_STOP_S: Final = 1.0
_log: Final = structlog.get_logger()
_lost: Final = Counter("soundmark_spans_lost_total", "Spans that could not be sent to the collector.")


class RecordedSpan:
    """A span of the SDK."""

    __slots__ = ("otel",)

    def __init__(self, otel: OtelSpan) -> None:
        self.otel: Final = otel

    def note(self, attributes: Attributes, *, name: str | None = None) -> None:
        """Add attributes, and give the span its final name."""
        self.otel.set_attributes(attributes)
        if name is not None:
            self.otel.update_name(name)

    def end(self, error: str | None) -> None:
        """End the span; `error` is the kind of failure, None for success."""
        if error is not None:
            self.otel.set_attribute("error.type", error)
            self.otel.set_status(Status(StatusCode.ERROR))
        self.otel.end()


class OtelRecorder:
    """A recorder with the SDK's sampler, resource and limits, which its own `OTEL_…` variables configure.

    The sampler is asked once for each trace in this process; what happens below follows its decision. Spans are sent by
    a thread of its own: if `exporter` is slow or fails, they are lost, and nobody waits.
    """

    def __init__(self, exporter: SpanExporter, *, service: str, version: str) -> None:
        self._exporter: Final = _ReportingExporter(exporter)
        self._processor: Final = BatchSpanProcessor(self._exporter)
        self._ids: Final = _Ids()
        self._chance: Final = RandomIdGenerator()
        provider = TracerProvider(
            resource=_describe_service(service, version), shutdown_on_exit=False, id_generator=self._ids
        )
        self._sampler: Final = provider.sampler
        provider.sampler = ALWAYS_ON
        provider.add_span_processor(self._processor)
        self._tracer: Final = provider.get_tracer("soundmark", version)

    def begin(self, name: str, kind: Kind, trace: TraceContext, origin: Origin) -> TraceContext | None:
        """Begin the first span of this process in `trace` and return its place; None if it is not sampled."""
        trace_id = int(trace.trace_id, 16)
        parent = Context()
        if origin != "new":
            parent = set_span_in_context(NonRecordingSpan(_remote_context(trace, trace_id)), parent)
        # Neither the flag nor the id of somebody unknown may decide: a sampler may take the id for chance.
        is_unknown = origin == "untrusted"
        asked_parent, asked_id = (Context(), self._chance.generate_trace_id()) if is_unknown else (parent, trace_id)
        decision = self._sampler.should_sample(asked_parent, asked_id, name, _KINDS[kind]).decision
        if decision is not Decision.RECORD_AND_SAMPLE:
            return None
        self._ids.next_trace_id = trace_id
        return _place(self._tracer.start_span(name, parent, _KINDS[kind]), trace)

    def begin_child(
        self, name: str, kind: Kind, parent: TraceContext, attributes: Attributes, links: Iterable[TraceContext] = ()
    ) -> TraceContext:
        """Begin a span below `parent`, which is recorded, and return its place."""
        above = set_span_in_context(parent.span.otel, Context())
        linked = [Link(each.span.otel.get_span_context()) for each in links]
        return _place(self._tracer.start_span(name, above, _KINDS[kind], attributes, linked), parent)

    def stop(self) -> None:
        """Send what is left, for at most a second; nothing if the collector is away."""
        self._exporter.give_up_if_failing()
        stopping = threading.Thread(target=self._processor.shutdown, name="spans", daemon=True)
        stopping.start()
        stopping.join(_STOP_S)


class _Ids(RandomIdGenerator):
    """The SDK's random ids, but a new trace has the id that the log already has."""

    next_trace_id = 0

    def generate_trace_id(self) -> int:
        return self.next_trace_id


class _ReportingExporter(SpanExporter):
    """An exporter that counts the spans that `exporter` lost, and logs an outage once, at its beginning and its end."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter: Final = exporter
        self._is_failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - spans are lost, whatever the reason, and nothing else
            _log.debug("spans_not_exported", error=type(error).__name__)
            result = SpanExportResult.FAILURE
        is_failing = result is not SpanExportResult.SUCCESS
        if is_failing:
            _lost.inc(len(spans))
        if is_failing != self._is_failing:
            self._is_failing = is_failing
            if is_failing:
                _log.warning("spans_lost", needed="a collector at OTEL_EXPORTER_OTLP_ENDPOINT")
            else:
                _log.info("spans_exported_again")
        return result

    def give_up_if_failing(self) -> None:
        """End the attempts of an exporter that was failing, and make it refuse what follows."""
        if self._is_failing:
            self._exporter.shutdown()

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def make_recorder(service: str, version: str) -> OtelRecorder:
    """Return a recorder that sends spans by OTLP over HTTP, in a thread of its own.

    Raises: ValueError; OSError: what a variable says cannot be used.
    """
    exporter = OTLPSpanExporter()
    # It would log each attempt of each batch.
    logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
    return OtelRecorder(exporter, service=service, version=version)


def _describe_service(service: str, version: str) -> Resource:
    """Return what every span says about its process; the operator's variables win."""
    return Resource.create({SERVICE_NAME: service, SERVICE_VERSION: version}).merge(OTELResourceDetector().detect())


def _remote_context(trace: TraceContext, trace_id: int) -> SpanContext:
    state = TraceState.from_header([trace.state]) if trace.state else None
    return SpanContext(
        trace_id, int(trace.parent_id, 16), is_remote=True, trace_flags=TraceFlags(trace.flags), trace_state=state
    )


def _place(span: OtelSpan, trace: TraceContext) -> TraceContext:
    span_id = f"{span.get_span_context().span_id:016x}"
    return TraceContext(trace.trace_id, span_id, SAMPLED | trace.flags & RANDOM, trace.state, RecordedSpan(span))
