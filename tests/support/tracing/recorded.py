"""A recorder for the apps that a test starts, whose spans stay in memory."""

import contextlib
from collections.abc import Iterator
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from soundmark.kit.tracing.recording import OtelRecorder
from soundmark.kit.tracing.spans import set_recorder


class Recorded:
    """The spans that were recorded, once the block has ended."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.recorder = OtelRecorder(self.exporter, service="soundmark-test", version="0")

    @property
    def spans(self) -> list[ReadableSpan]:
        """Return the spans in the order in which they ended."""
        return list(self.exporter.get_finished_spans())

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def only(self, name: str, kind: SpanKind | None = None) -> ReadableSpan:
        """Return the one span of this name and, if it is given, this kind."""
        (found,) = [span for span in self.spans if span.name == name and kind in (None, span.kind)]
        return found

    def text(self) -> str:
        """Return everything that is sent about every span."""
        return "\n".join(span.to_json() for span in self.spans)


@contextlib.contextmanager
def recording() -> Iterator[Recorded]:
    """Record the spans of the block, of whatever runs in this process."""
    recorded = Recorded()
    set_recorder(recorded.recorder)
    try:
        yield recorded
    finally:
        set_recorder(None)
        recorded.recorder.stop()


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})
