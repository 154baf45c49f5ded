"""One operation of a stand-in: an ASGI app that works and answers, or misbehaves if a switch says so."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from soundmark.kit.http.asgi import Receive, Scope, Send
from soundmark.sandbox.hanging_up import hang_up
from soundmark.sandbox.held_answers import HeldAnswers
from soundmark.sandbox.journal import Call, Journal
from soundmark.sandbox.misbehaviour import OPERATION_KINDS, Switch, Switches, SystemName

Handler = Callable[[Request], Awaitable[Response]]
# Calls the handler if the request may pass, for example if its credential is right.
Gate = Callable[[Request, Handler], Awaitable[Response]]
MakeError = Callable[[int], Response]

_AMOUNTS: Final = {"amount", "amount_total", "amount_paid", "amount_due", "unit_amount", "total_ttc"}
_STATUSES: Final = {"server_error": 500, "held_error": 500, "rate_limited": 429, "refused": 401, "conflict": 409}
_ELSEWHERE: Final = "http://127.0.0.1:9/elsewhere"  # Nobody listens there.
_CHUNK: Final = b" " * 64 * 1024
_PAGE: Final = "<!doctype html><html><head><title>Maintenance</title></head><body>Back soon.</body></html>"
# What is answered without any work, and is no object of the system.
_INSTEAD: Final[Mapping[str, Callable[[], Response]]] = {
    "redirect": lambda: RedirectResponse(_ELSEWHERE),
    "html": lambda: HTMLResponse(_PAGE),
    "html_as_json": lambda: HTMLResponse(_PAGE, media_type="application/json"),
    "firewall": lambda: HTMLResponse(_PAGE, 403),
    "list": lambda: JSONResponse([1]),
    "empty_list": lambda: JSONResponse([]),
    "wrong_object": lambda: JSONResponse({"id": "wrong_object", "object": "balance"}),
}


@dataclass(frozen=True, slots=True)
class Shared:
    """What the operations of all systems share."""

    switches: Switches = field(default_factory=Switches)
    held: HeldAnswers = field(default_factory=HeldAnswers)
    journal: Journal = field(default_factory=Journal)

    def clear(self) -> None:
        """Turn every switch off, let every answer go, and forget every call."""
        self.switches.reset()
        self.held.clear()
        self.journal.clear()


@dataclass(frozen=True, slots=True)
class Api:
    """The API of one system: where it answers, who may call, and how it words an error."""

    system: SystemName
    prefix: str
    shared: Shared
    gate: Gate
    make_error: MakeError

    def route(self, method: str, path: str, name: str, handler: Handler) -> Route:
        """Return the route of one operation; `name` is what switches call it."""
        self.shared.switches.operations[self.system].add(name)
        return Route(self.prefix + path, _Operation(self, name, handler), methods=[method])


class _Operation:
    def __init__(self, api: Api, name: str, handler: Handler) -> None:
        self._api: Final = api
        self._name: Final = name
        self._handler: Final = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        key = request.headers.get("idempotency-key")
        self._api.shared.journal.calls.append(
            Call(self._api.system, self._name, request.url.path, request.url.query, key)
        )
        switch = self._api.shared.switches.take(self._api.system, self._name, OPERATION_KINDS)
        if switch is None:
            response = await self._api.gate(request, self._handler)
            await response(scope, receive, send)
        else:
            await self._misbehave(switch, request, scope, receive, send)

    async def _misbehave(self, switch: Switch, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        if switch.kind == "down":
            await hang_up(send)
            return
        if switch.kind == "endless":
            await _send_endlessly(request, send)
            return
        if not await self._begin(switch, request):
            await hang_up(send)
            return
        response = _replace(switch, self._api.make_error)
        # A refusal passes the gate as well, because the card provider stores its 500 under the idempotency key.
        answer = await self._api.gate(request, self._handler if response is None else _always(response))
        if switch.merge and switch.kind not in _INSTEAD:
            answer = _rewrite(answer, lambda value: _alter(value, switch.merge))
        match switch.kind:
            case "held_answer" | "held_error":
                await self._api.shared.held.hold(self._api.system)
                await answer(scope, receive, send)
            case "false_error":
                await self._api.make_error(500)(scope, receive, send)
            case "lost_answer":
                await hang_up(send)
            case "half_body":
                body = bytes(answer.body)
                await send({"type": "http.response.start", "status": answer.status_code, "headers": answer.raw_headers})
                await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
                await hang_up(send)
            case "wrong_amount":
                await _rewrite(answer, _raise_amounts)(scope, receive, send)
            case _:
                await answer(scope, receive, send)

    async def _begin(self, switch: Switch, request: Request) -> bool:
        """Wait as long as the work must; return whether it is still wanted."""
        if switch.kind not in {"slow", "held"}:
            return True
        await request.body()  # Kept, so that the work is done even if the caller gives up.
        if switch.kind == "held":
            return await self._api.shared.held.hold(self._api.system)
        await asyncio.sleep(switch.seconds)
        return True


def _replace(switch: Switch, make_error: MakeError) -> Response | None:
    """Return the response that replaces the work; None if the operation does its work."""
    if switch.kind in _STATUSES:
        refusal = make_error(_STATUSES[switch.kind])
        refusal.headers.update(switch.headers)
        return refusal
    make = _INSTEAD.get(switch.kind)
    return None if make is None else make()


def _always(response: Response) -> Handler:
    async def answer(_: Request) -> Response:
        return response

    return answer


async def _send_endlessly(request: Request, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    while not await request.is_disconnected():
        await send({"type": "http.response.body", "body": _CHUNK, "more_body": True})


def _rewrite(answer: Response, change: Callable[[Any], Any]) -> Response:
    value = change(json.loads(bytes(answer.body)))
    kept = {name: text for name, text in answer.headers.items() if name not in {"content-length", "content-type"}}
    return JSONResponse(value, answer.status_code, kept)


def _raise_amounts(value: Any) -> Any:
    if isinstance(value, list):
        return [_raise_amounts(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _raise_amount(item) if name in _AMOUNTS else _raise_amounts(item) for name, item in value.items()}


def _raise_amount(value: Any) -> Any:
    if isinstance(value, int):
        return value + 1
    try:
        return str(Decimal(value) + 1)
    except (InvalidOperation, TypeError):
        return value


def _alter(value: Any, patch: Mapping[str, Any]) -> Any:
    return [merge_patch(item, patch) for item in value] if isinstance(value, list) else merge_patch(value, patch)


def merge_patch(value: Any, patch: Any) -> Any:
    """Return `value` with `patch` merged into it.

    Source: RFC 7396.
    """
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for name, item in patch.items():
        if item is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), item)
    return merged
