"""What recording spans costs Core's routes: with 1 % of the traces recorded, beside a Core that records none."""

import contextlib
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from bench import seed, wrk
from bench.figures import Figure, rates
from bench.service import OPERATOR_TOKEN, core, seeded
from bench.wrk import Demand
from soundmark.embedded.postgres import RunningCluster

_ROUNDS: Final = 10
_ROUND_S: Final = 1.5
_CLIENTS: Final = 8
_AUTHORIZATION: Final = f"Bearer {OPERATOR_TOKEN}"
_ONE_IN_A_HUNDRED: Final = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01"}


def tracing(cluster: RunningCluster) -> list[Figure]:
    """Measure a list and single Codes with tracing and without, in turns; the collector has the same cores."""
    database = seeded(cluster, 1_000)
    demands = {
        "A list of 50 Codes": Demand(
            [f"/v1/codes?organization_id={seed.ORGANIZATION_ID}&limit=50"], _CLIENTS, _AUTHORIZATION
        ),
        "Single Codes": Demand(["/v1/codes"], _CLIENTS, _AUTHORIZATION, [seed.wanted_code()]),
    }
    figures = []
    with _collector() as url, core(database) as plain:
        recording = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, **_ONE_IN_A_HUNDRED}
        with core(database, more=recording) as traced:
            for name, demand in demands.items():
                per_s: dict[bool, list[float]] = {True: [], False: []}
                for service in (plain, traced):
                    wrk.run(service.base_url, demand, seconds=_ROUND_S)
                for number in range(_ROUNDS):
                    # Each goes first as often as the other: the machine slows down and recovers.
                    sides = [(True, traced), (False, plain)]
                    for is_traced, service in sides if number % 2 else sides[::-1]:
                        load = wrk.run(service.base_url, demand, seconds=_ROUND_S, seed=number)
                        per_s[is_traced].append(load.requests_per_s)
                figures.append(rates(f"{name}, 1 % of the traces recorded", per_s[True], "none", per_s[False], 0.9))
    return figures


@contextlib.contextmanager
def _collector() -> Iterator[str]:
    """Take spans by OTLP over HTTP, and forget them."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(HTTPStatus.OK)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
