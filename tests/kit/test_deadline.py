"""A deadline that travels with a request and ends the work for it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx2
import psycopg
import pytest
from starlette.responses import PlainTextResponse
from structlog.testing import capture_logs

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.deadline import DeadlinePassed, enforce_deadline, find_remaining_s, outlive_deadline
from soundmark.kit.http.asgi import Receive, Scope, Send
from soundmark.kit.http.requests.bearer_auth import Guard, describe_caller
from soundmark.kit.http.requests.edge import HttpEdge
from soundmark.kit.http.requests.private_headers import TIMEOUT_MAX_S, read_caller, read_timeout_s, write_timeout
from soundmark.kit.postgres.database import Database

CREDENTIAL = "credential-of-the-tests"


@contextlib.asynccontextmanager
async def guarded() -> AsyncIterator[httpx2.AsyncClient]:
    """Run a component that reports how long the request may take, and never answers on `/slow`."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/slow":
            await asyncio.Event().wait()
        await PlainTextResponse(str(find_remaining_s()))(scope, receive, send)

    guard = Guard(app, (Secret(CREDENTIAL),))
    edge = HttpEdge(guard, "http://edge.test", SystemEntropy(), describe_caller=describe_caller)
    transport = httpx2.ASGITransport(edge)
    headers = {"authorization": f"Bearer {CREDENTIAL}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://edge.test", headers=headers) as client:
        yield client


def test_without_a_well_formed_timeout_the_maximum_applies(subtests: pytest.Subtests) -> None:
    for sent, timeout_s in [
        ([], TIMEOUT_MAX_S),
        ([b"5000"], 5.0),
        ([b"1"], 0.001),
        ([b"60001"], TIMEOUT_MAX_S),
        ([b"999999999"], TIMEOUT_MAX_S),
        ([b"0"], TIMEOUT_MAX_S),
        ([b"-5"], TIMEOUT_MAX_S),
        ([b"5.5"], TIMEOUT_MAX_S),
        ([b"5s"], TIMEOUT_MAX_S),
        ([b" 5000"], TIMEOUT_MAX_S),
        ([b"\xb2"], TIMEOUT_MAX_S),
        ([b""], TIMEOUT_MAX_S),
        ([b"9" * 5000], TIMEOUT_MAX_S),
        ([b"5000", b"5000"], TIMEOUT_MAX_S),
    ]:
        with subtests.test(sent=sent, timeout_s=timeout_s):
            assert read_timeout_s([(b"x-svc-timeout-ms", value) for value in sent]) == timeout_s


def test_a_written_deadline_is_read_back_to_the_millisecond(subtests: pytest.Subtests) -> None:
    for timeout_s in [0.0001, 1.0, 5.0, 12.3456, 60.0]:
        with subtests.test(timeout_s=timeout_s):
            header = (b"x-svc-timeout-ms", write_timeout(timeout_s).encode())
            assert read_timeout_s([header]) == pytest.approx(max(timeout_s, 0.001), abs=0.0005)


def test_a_malformed_caller_name_is_ignored(subtests: pytest.Subtests) -> None:
    for sent, name in [
        ([b"soundmark-core-jobs"], "soundmark-core-jobs"),
        ([], None),
        ([b""], None),
        ([b"Core"], None),
        ([b"core\xe9"], None),
        ([b"core jobs"], None),
        ([b"c" * 65], None),
        ([b"core", b"core"], None),
    ]:
        with subtests.test(sent=sent, name=name):
            assert read_caller([(b"x-svc-caller", value) for value in sent]) == name


async def test_a_request_knows_how_long_its_caller_waits() -> None:
    async with guarded() as client:
        response = await client.get("/", headers={"x-svc-timeout-ms": "5000"})
        assert 4 < float(response.text) <= 5
        assert 59 < float((await client.get("/")).text) <= 60
        assert (await client.get("/healthz")).text == "None"


async def test_the_deadline_ends_a_request() -> None:
    async with guarded() as client:
        response = await client.get("/slow", headers={"x-svc-timeout-ms": "20"})
    assert (response.status_code, response.json()["code"]) == (503, "deadline_passed")


async def test_the_callers_name_is_logged_and_grants_nothing() -> None:
    async with guarded() as client:
        with capture_logs() as logged:
            named = {"x-svc-caller": "soundmark-core"}
            assert (await client.get("/", headers=named)).status_code == 200
            assert (await client.get("/", headers={"x-svc-caller": "x y"})).status_code == 200
            assert (await client.get("/", headers={**named, "authorization": "Bearer other"})).status_code == 401
    assert [entry.get("caller") for entry in logged if entry["event"] == "request"] == ["soundmark-core", None, None]


async def test_shielded_work_outlives_the_deadline() -> None:
    async with enforce_deadline(0.01):
        outlive_deadline()
        await asyncio.sleep(0.05)
        assert find_remaining_s() is None


async def test_an_inner_timeout_is_not_mistaken_for_the_deadline() -> None:
    with pytest.raises(TimeoutError):
        async with enforce_deadline(30), asyncio.timeout(0.01):
            await asyncio.Event().wait()


@pytest.mark.parametrize("kind", ["transaction", "snapshot"])
async def test_the_deadline_ends_the_query_and_the_connection_is_used_again(db: Database, kind: str) -> None:
    begin = getattr(db, kind)
    with pytest.raises(DeadlinePassed):
        async with enforce_deadline(0.2), begin() as tx:
            await tx.value("SELECT pg_sleep(30)")
    async with db.snapshot() as tx:
        running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(30)'"
        assert await tx.value(running) == 0


async def test_the_server_ends_the_query_where_the_process_cannot(db: Database) -> None:
    """A process that hangs cancels nothing, so the statement has its own limit."""
    async with enforce_deadline(1.5), db.snapshot() as tx:
        assert await tx.value("SHOW statement_timeout") == "2s"
    async with enforce_deadline(1.5), db.snapshot() as tx, db.beside(tx) as second:
        assert await second.value("SHOW statement_timeout") == "2s"
    async with enforce_deadline(60), db.snapshot() as tx:
        assert await tx.value("SHOW statement_timeout") == "30s"
    async with enforce_deadline(1.5), db.transaction(statement_timeout_s=120) as tx:
        assert await tx.value("SHOW statement_timeout") == "2min"
    async with enforce_deadline(0.5), db.snapshot() as tx:
        outlive_deadline()
        with pytest.raises(psycopg.errors.QueryCanceled):
            await tx.value("SELECT pg_sleep(30)")
