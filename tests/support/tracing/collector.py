"""A small collector: it takes spans by OTLP over HTTP, or never answers."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """What arrived: (service, name, trace id in hexadecimal) of each span."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[tuple[str, str, str]] = []
        self.has_request = threading.Event()
        self.may_answer = threading.Event()

    def take(self, body: bytes) -> None:
        """Note the spans of a request."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            facts = {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [(facts["service.name"], span.name, span.trace_id.hex()) for span in scope.spans]


@contextlib.contextmanager
def running_collector(*, answers: bool = True) -> Iterator[Collector]:
    """Run a collector on a loopback socket; one that does not answer holds its requests until the block ends."""
    collector = Collector()
    if answers:
        collector.may_answer.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.has_request.set()
            collector.may_answer.wait()
            assert self.path == "/v1/traces"
            collector.take(body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.may_answer.set()
        server.shutdown()
        server.server_close()
        thread.join()
