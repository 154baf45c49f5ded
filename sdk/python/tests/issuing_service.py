"""A fake of Core's issuance: it keeps receipts, counts the Codes, and loses answers on command."""

import json
import socketserver
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from soundmark_sdk.client import (
    AsyncClient,
    ClientFailure,
    Intent,
    IssueRequest,
)

from .issuer import INTENT, compact
from .stand_ins import FakeClock, LoopbackServer, make_response

CREDENTIAL: Final = "xak_" + "s" * 43
ORGANIZATION: Final = "org_0123456789abcdefABCDEF"
PROJECT: Final = "prj_0123456789abcdefABCDEF"
ISSUE_REQUEST: Final = IssueRequest(
    organization_id=ORGANIZATION,
    project_id=PROJECT,
    issuer="Radio Nordlicht",
    expires_at=datetime(2027, 1, 1, tzinfo=UTC),
    intent=Intent("link", "open", {"url": "https://example.org/é"}),
)
ISSUE, BATCH = "/v1/codes", "/v1/codes/batch"
RECOVER, BATCH_RECOVER = "/v1/codes/recover", "/v1/codes/batch/recover"


@dataclass(frozen=True)
class Request:
    """A request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def key(self) -> str | None:
        return self.headers.get("idempotency-key")

    @property
    def route(self) -> str:
        return self.path.partition("?")[0]


# The fate of one request: the bytes to send before the connection is closed, and none for a lost answer.
Fault = Callable[["IssuingService", Request], bytes]


def answer_honestly(service: "IssuingService", request: Request) -> bytes:
    return service.answer(request)


def lose_request(_: "IssuingService", __: Request) -> bytes:
    return b""


def lose_answer(service: "IssuingService", request: Request) -> bytes:
    service.answer(request)
    return b""


def answer_half(service: "IssuingService", request: Request) -> bytes:
    answer = service.answer(request)
    return answer[: len(answer) - 40]


def stay_silent(service: "IssuingService", request: Request) -> bytes:
    service.answer(request)
    service.stopping.wait()
    return b""


def answer_with(response: bytes) -> Fault:
    """Return a fault that answers with these bytes and does nothing else."""
    return lambda _, __: response


def perform_and_answer_with(response: bytes) -> Fault:
    """Return a fault that performs the request and then answers with these bytes."""

    def behave(service: "IssuingService", request: Request) -> bytes:
        service.answer(request)
        return response

    return behave


def make_problem(status: int, code: str, **headers: str) -> bytes:
    document = {"type": f"/problems/{code}", "title": "T", "status": status, "detail": "server text", "code": code}
    typed = {"Content_Type": "application/problem+json", **headers}
    return make_response(status, compact({**document, "request_id": "req-1"}), **typed)


def make_code_document(number: int) -> dict[str, Any]:
    return {
        "xr_id": f"xr_{number:022d}",
        "organization_id": ORGANIZATION,
        "project_id": PROJECT,
        "campaign_id": None,
        "issuer": "Radio Nordlicht",
        "issued_at": "2026-11-20T10:00:00.000Z",
        "expires_at": "2027-01-01T00:00:00.000Z",
        "broadcast_token": f"brd_{number:016d}",
        "broadcast_frame": f"XRC1:brd_{number:016d}",
        "status": "active",
        "revoked_at": None,
        "audience_enabled": False,
        "audience_integration_id": None,
        "intent": INTENT,
        "signed_code": {"version": 1},
    }


@dataclass
class Receipt:
    route: str
    body: bytes
    answer: bytes


@dataclass
class _State:
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    issued: int = 0


class IssuingService(LoopbackServer):
    """Correct except for `faults`, each of which affects one request."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.state = _State()
        self._turn = threading.Lock()

    @property
    def routes(self) -> list[str]:
        return [request.route for request in self.state.requests]

    @property
    def keys(self) -> set[str | None]:
        return {request.key for request in self.state.requests}

    def add_faults(self, *faults: Fault) -> None:
        self.state.faults.extend(faults)

    def respond(self, request: Request) -> bytes:
        with self._turn:
            self.state.requests.append(request)
            fault = self.state.faults.pop(0) if self.state.faults else answer_honestly
        return fault(self, request)

    def answer(self, request: Request) -> bytes:
        with self._turn:
            recovers = request.route.endswith("/recover")
            route = request.route.removesuffix("/recover")
            receipt = self.state.receipts.get(request.key or "")
            if receipt is not None and (receipt.route, receipt.body) != (route, request.body):
                return make_problem(409, "idempotency_conflict")
            if receipt is None and recovers:
                return make_problem(404, "code_issue_not_found")
            if receipt is None:
                receipt = Receipt(route, request.body, self._issue(route, json.loads(request.body)))
                if request.key is not None:
                    self.state.receipts[request.key] = receipt
            return make_response(200 if recovers else 201, receipt.answer)

    def _issue(self, route: str, body: dict[str, Any]) -> bytes:
        count = body.get("count", 1)
        codes = [make_code_document(self.state.issued + number) for number in range(count)]
        self.state.issued += count
        return compact({"data": codes} if route == BATCH else codes[0])


class _Handler(socketserver.StreamRequestHandler):
    server: IssuingService

    def handle(self) -> None:
        line = self.rfile.readline().decode().split()
        if not line:
            return
        lines = iter(lambda: self.rfile.readline().decode().strip(), "")
        headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
        body = self.rfile.read(int(headers.get("content-length", "0")))
        try:
            self.wfile.write(self.server.respond(Request(line[0], line[1], headers, body)))
        except ConnectionError:
            # The client hung up, as some tests expect.
            return


def make_client(service: IssuingService, clock: FakeClock, **settings: Any) -> AsyncClient:
    return AsyncClient(service.url, CREDENTIAL, clock=clock, **{"timeout_s": 5, **settings})


async def fail_to_issue(service: IssuingService, client: AsyncClient, **options: Any) -> ClientFailure:
    with pytest.raises(ClientFailure) as failure:
        await client.codes.issue(ISSUE_REQUEST, **options)
    assert CREDENTIAL not in str(failure.value) + repr(failure.value)
    assert len(service.keys) == 1
    return failure.value
