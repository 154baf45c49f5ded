"""Whether this process records spans: OpenTelemetry's own variables say it, and the extra `otel` must be installed."""

import contextlib
import importlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import structlog

from soundmark.kit.tracing.spans import set_recorder

# Named, not imported: a process that records nothing loads nothing of the library.
_RECORDING: Final = "soundmark.kit.tracing.recording"
_LIBRARY: Final = "opentelemetry"
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_log: Final = structlog.get_logger()


@contextlib.contextmanager
def recording_spans(service: str, version: str, environ: Mapping[str, str]) -> Iterator[None]:
    """Record spans during the block, if the environment says so. What keeps us from it is logged, and we do without.

    In the end, spans that were not sent yet have a second to be sent.
    """
    recorder = _find_recorder(service, version, environ) if is_wanted(environ) else None
    if recorder is None:
        yield
        return
    set_recorder(recorder)
    try:
        yield
    finally:
        set_recorder(None)
        recorder.stop()


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Return whether an exporter or a collector is named, and nothing disabled."""
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or exporter == "none":
        return False
    return bool(exporter) or any(environ.get(name) for name in _ENDPOINTS)


def _find_recorder(service: str, version: str, environ: Mapping[str, str]) -> Any:
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() or "otlp"
    protocol = next((value for name in _PROTOCOLS if (value := environ.get(name))), "http/protobuf")
    try:
        if exporter != "otlp":
            raise ValueError("OTEL_TRACES_EXPORTER must be otlp or none")  # noqa: TRY301 - one place for all reasons
        if protocol != "http/protobuf":
            raise ValueError("OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf")  # noqa: TRY301 - as above
        return importlib.import_module(_RECORDING).make_recorder(service, version)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != _LIBRARY:
            raise
        _log.warning("tracing_off", reason="the extra soundmark[otel] is not installed")
    except (ValueError, OSError) as error:
        _log.warning("tracing_off", reason=str(error))
    return None
