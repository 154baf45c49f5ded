"""An accounting system that behaves like Dolibarr 22 over HTTP, and misbehaves on command.

Its numbers are strings, its references are not unique, and its totals are rounded. Its firewall sees an attack in a
colon, and its errors show SQL.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from http import HTTPStatus
from typing import Any, Final, Literal
from urllib.parse import parse_qs, unquote, urlsplit

KEY: Final = "key-of-the-accounting-system"
SQL: Final = "INSERT INTO llx_facture: a foreign key constraint fails"
Operation = Literal["search", "post", "read", "thirdparty"]
# Done or not, and what the caller sees of it.
Fault = Literal[
    "dropped",  # Nothing is done, and nothing comes back.
    "lost_answer",  # It is done, and nothing comes back.
    "half_body",  # It is done, and half of the answer comes back.
    "sql_error",  # Nothing is done.
    "sql_error_after",  # It is done.
    "html",  # As when the module is off.
    "forbidden_html",  # As when the firewall sees an attack.
    "nonsense",
    "oversized",
    "empty_list",  # As a replica answers that lags behind.
]

_API: Final = "/api/index.php"
_ATTACK: Final = re.compile(r"""[:;"'<>?(){}$%#]""")
_FILTER: Final = re.compile(r"\(t\.ref_ext:=:'([^':]*:?[^':]*)'\)")
_HTML: Final = "text/html; charset=UTF-8"
_PRICE: Final = Decimal("0.00001")


@dataclass(frozen=True)
class ReceivedCall:
    """A request as it arrived."""

    operation: str
    headers: dict[str, str]
    query: dict[str, str]
    body: Any


@dataclass(frozen=True)
class _Reply:
    status: int
    body: bytes
    media_type: str = "application/json"


@dataclass
class AccountingStandIn:
    """What the accounting system holds, and how it answers; a test changes both while it runs.

    `faults` are used up one by one, by operation. While `held` names an operation, it is done at once, and its answer
    waits.
    """

    url: str = ""
    decimals: int = 3
    invoices: list[dict[str, Any]] = field(default_factory=list)
    thirdparties: set[int] = field(default_factory=lambda: {7, 8})
    calls: list[ReceivedCall] = field(default_factory=list)
    faults: dict[Operation, list[Fault]] = field(default_factory=dict)
    held: Operation | None = None
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def count(self, operation: Operation) -> int:
        """Return how often an operation was called."""
        return sum(call.operation == operation for call in self.calls)

    async def until_called(self, operation: Operation, count: int = 1) -> None:
        """Wait until an operation was called this often in all."""
        async with asyncio.timeout(60):
            while self.count(operation) < count:  # noqa: ASYNC110 - the caller is another process
                await asyncio.sleep(0.005)

    def hold(self, operation: Operation) -> None:
        """Let the answers of an operation wait until `release`."""
        self.held = operation
        self.released = asyncio.Event()

    def release(self) -> None:
        """Let the answers go."""
        self.held = None
        self.released.set()

    def add_invoice(self, reference: str, *, socid: int, total: str, invoice_id: int | None = None) -> int:
        """Add an invoice that somebody else made; return its id."""
        number = invoice_id or len(self.invoices) + 1
        self.invoices.append(
            {"id": str(number), "ref": f"(PROV{number})", "ref_ext": reference, "socid": str(socid), "status": "0"}
            | {"total_ttc": total}
        )
        return number

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and hang up."""
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._serve(reader, writer)
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        operation = _operation(method, parts.path)
        shown = json.loads(body, parse_float=Decimal) if body else None
        self.calls.append(ReceivedCall(operation, headers, query, shown))
        faults = self.faults.get(operation)  # type: ignore[call-overload]  # "unknown" has none
        fault: Fault | None = faults.pop(0) if faults else None
        is_done = fault in {None, "lost_answer", "half_body", "sql_error_after"}
        reply = self._answer(method, parts.path, headers, query, shown) if is_done else _Reply(200, b"")
        if self.held == operation:
            await self.released.wait()
        writer.write(_spoil(reply, fault))
        await writer.drain()

    def _answer(self, method: str, path: str, headers: dict[str, str], query: dict[str, str], body: Any) -> _Reply:
        refused = _refuse(path, headers, query)
        if refused is not None:
            return refused
        match method, path.removeprefix(_API).split("/")[1:]:
            case "GET", ["invoices"]:
                return self._search(query)
            case "POST", ["invoices"]:
                return self._post(body)
            case "GET", ["invoices", number]:
                found = [invoice for invoice in self.invoices if invoice["id"] == number]
                return _json(found[0]) if found else _error(HTTPStatus.NOT_FOUND, "Not Found: Invoice not found")
            case "GET", ["thirdparties", number] if int(number) in self.thirdparties:
                return _json({"id": number, "name": "Radio Nordlicht SARL", "status": "1", "client": "1"})
            case _:
                return _error(HTTPStatus.NOT_FOUND, "Not Found")

    def _search(self, query: dict[str, str]) -> _Reply:
        wanted = _FILTER.fullmatch(query.get("sqlfilters", ""))
        if wanted is None:
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, "Error when validating parameter sqlfilters")
        members = query["properties"].split(",")
        found = [invoice for invoice in self.invoices if invoice["ref_ext"].lower() == wanted[1].lower()]
        return _json([{name: invoice[name] for name in members} for invoice in found[: int(query["limit"])]])

    def _post(self, body: dict[str, Any]) -> _Reply:
        if "socid" not in body:
            return _error(HTTPStatus.BAD_REQUEST, "Bad Request: socid field missing")
        if body["socid"] not in self.thirdparties:
            return _error(HTTPStatus.INTERNAL_SERVER_ERROR, SQL)
        return _json(self.add_invoice(body["ref_ext"], socid=body["socid"], total=self._total(body["lines"])))

    def _total(self, lines: list[dict[str, Any]]) -> str:
        (line,) = lines
        price = Decimal(line["subprice"]).quantize(_PRICE, ROUND_HALF_UP)
        total = price * line["qty"] * (100 + Decimal(line["tva_tx"])) / 100
        return f"{total.quantize(Decimal(1).scaleb(-self.decimals), ROUND_HALF_UP):.8f}"


@contextlib.asynccontextmanager
async def running_accounting_stand_in() -> AsyncIterator[AccountingStandIn]:
    """Run an accounting system on a loopback port."""
    stand_in = AccountingStandIn()
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        serving.add(task)
        with contextlib.suppress(asyncio.CancelledError):
            await stand_in.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    stand_in.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield stand_in
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


def _refuse(path: str, headers: dict[str, str], query: dict[str, str]) -> _Reply | None:
    """Return the answer to a request that gets no further than the firewall and the key."""
    if _ATTACK.search(unquote(path)) or any('"' in value for value in query.values()):
        return _Reply(HTTPStatus.FORBIDDEN, b"<html>Access refused</html>", _HTML)
    if headers.get("dolapikey") != KEY:
        return _error(HTTPStatus.UNAUTHORIZED, "Unauthorized: Failed to login to API")
    if {"br", "bz"} & set(re.findall(r"[a-z]+", headers.get("accept-encoding", ""))):
        return _Reply(HTTPStatus.OK, b"BZh9", "application/json\r\ncontent-encoding: bz")
    return None


def _operation(method: str, path: str) -> str:
    if path == f"{_API}/invoices":
        return "post" if method == "POST" else "search"
    if path.startswith(f"{_API}/invoices/"):
        return "read"
    return "thirdparty" if path.startswith(f"{_API}/thirdparties/") else "unknown"


def _json(value: Any) -> _Reply:
    return _Reply(HTTPStatus.OK, json.dumps(value).encode())


def _error(status: int, message: str) -> _Reply:
    return _Reply(status, json.dumps({"error": {"code": status, "message": message, "0": SQL}}).encode())


def _spoil(reply: _Reply, fault: Fault | None) -> bytes:
    """Return the bytes of a reply, or of what comes in its place."""
    if fault is None:
        return _write(reply)
    if fault == "half_body":
        return _write(reply)[: -len(reply.body) // 2]
    return b"" if fault in {"dropped", "lost_answer"} else _write(_IN_PLACE[fault])


def _write(reply: _Reply) -> bytes:
    head = (
        f"HTTP/1.1 {reply.status} \r\ncontent-type: {reply.media_type}\r\n"
        f"content-length: {len(reply.body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + reply.body


_IN_PLACE: Final[dict[Fault, _Reply]] = {
    "sql_error": _error(HTTPStatus.INTERNAL_SERVER_ERROR, SQL),
    "sql_error_after": _error(HTTPStatus.INTERNAL_SERVER_ERROR, SQL),
    "html": _Reply(HTTPStatus.OK, b"Module <b>Api</b> must be enabled", _HTML),
    "forbidden_html": _Reply(HTTPStatus.FORBIDDEN, b"<html>Access refused</html>", _HTML),
    "nonsense": _json({"id": "nobody", "0": [None]}),
    "oversized": _Reply(HTTPStatus.OK, b'"' + b"x" * 2_000_000 + b'"'),
    "empty_list": _json([]),
}
