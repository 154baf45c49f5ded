"""Metrics in Prometheus's text format, on a port of their own.

If several processes serve one component, each keeps its values in files below `PROMETHEUS_MULTIPROC_DIR`, and any of
them reports the sums of all.
"""

import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

from prometheus_client import REGISTRY, CollectorRegistry, make_asgi_app, start_http_server
from prometheus_client.multiprocess import MultiProcessCollector

from soundmark.kit.http.server.sockets import reserve_port

AsgiApp = Callable[[Any, Any, Any], Awaitable[None]]


def metrics_app() -> AsgiApp:
    """Return an ASGI app that serves `/metrics`, and 404 elsewhere."""
    registry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # prometheus-client has no types here
    answer = cast("AsgiApp", make_asgi_app(registry))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] != "/metrics":
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await answer(scope, receive, send)

    return app


@contextlib.contextmanager
def serving_metrics(port: int | None, host: str) -> Iterator[None]:
    """Serve the metrics of a process without a server of its own, in a thread; port None: do not.

    Raises: CannotListen.
    """
    if port is None:
        yield
        return
    reserve_port(host, port).close()  # Its refusal names the address.
    server, thread = start_http_server(port, addr=host)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
