"""The routes of `/control`, and its acts on all systems together."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from soundmark.sandbox.control.act import Act, Do
from soundmark.sandbox.control.card import CardControl
from soundmark.sandbox.control.fields import ControlRefused, Fields, read_fields
from soundmark.sandbox.control.others import OtherControl
from soundmark.sandbox.deliveries import Delivery
from soundmark.sandbox.misbehaviour import EVERY, KINDS, OPERATION_KINDS, SYSTEMS, Switch, TooManySwitches
from soundmark.sandbox.pages import redirect
from soundmark.sandbox.systems import Systems

_TIMES_MAX: Final = 1_000_000
_AWAITED_S: Final = 30


class Control:
    """All acts."""

    def __init__(self, systems: Systems) -> None:
        self._systems: Final = systems

    def routes(self) -> list[Route]:
        """Return the routes."""
        acts = [*self._acts(), *CardControl(self._systems).acts(), *OtherControl(self._systems).acts()]
        return [Route("/control" + act.path, _serve(act.do), methods=[act.method]) for act in acts]

    def _acts(self) -> list[Act]:
        return [
            Act("GET", "", self._show),
            Act("POST", "/reset", self._reset),
            Act("GET", "/switches", self._list_switches),
            Act("POST", "/switches", self._add_switch),
            Act("POST", "/switches/reset", self._reset_switches),
            Act("GET", "/calls", self._list_calls),
            Act("POST", "/calls/clear", self._clear_calls),
            Act("POST", "/answers/await", self._await_answers),
            Act("POST", "/answers/release", self._release_answers),
            Act("GET", "/webhooks", self._list_deliveries),
            Act("POST", "/webhooks/hold", self._hold),
            Act("POST", "/webhooks/release", self._release),
            Act("POST", "/webhooks/settle", self._settle),
            Act("POST", "/webhooks/{id}/send", self._send_again),
        ]

    async def _show(self, _: Fields, __: Mapping[str, str]) -> Any:
        systems = self._systems
        return {
            "settings": {
                "card": asdict(systems.card.choices),
                "local": asdict(systems.local.choices),
                "accounting": asdict(systems.accounting.choices),
                "desk": asdict(systems.desk.choices),
            },
            "switches": [asdict(switch) for switch in systems.shared.switches.list()],
            "held": sorted(systems.deliveries.held),
            "kinds": KINDS,
        }

    async def _reset(self, _: Fields, __: Mapping[str, str]) -> Any:
        self._systems.clear()
        return {}

    async def _list_switches(self, _: Fields, __: Mapping[str, str]) -> Any:
        return {"switches": [asdict(switch) for switch in self._systems.shared.switches.list()]}

    async def _add_switch(self, fields: Fields, _: Mapping[str, str]) -> Any:
        fields.require_known({"system", "kind", "operation", "times", "seconds", "merge", "headers"})
        times = fields.whole("times", 1, most=_TIMES_MAX)
        system = next(name for name in SYSTEMS if name == fields.choice("system", SYSTEMS))
        kind = fields.choice("kind", KINDS)
        operation = fields.text("operation", EVERY)
        # Webhooks have types in place of operations, and those of the future are unknown.
        if kind in OPERATION_KINDS and operation not in {EVERY, *self._systems.shared.switches.operations[system]}:
            raise ControlRefused(f"{system} has no operation {operation}")
        switch = Switch(
            system=system,
            kind=kind,
            operation=operation,
            times=times or None,
            seconds=fields.seconds("seconds", 2),
            merge=fields.mapping("merge"),
            headers={name: str(value) for name, value in fields.mapping("headers").items()},
        )
        try:
            self._systems.shared.switches.add(switch)
        except TooManySwitches:
            raise ControlRefused("too many switches are on; reset them first", 409) from None
        return asdict(switch)

    async def _reset_switches(self, fields: Fields, _: Mapping[str, str]) -> Any:
        fields.require_known({"system"})
        self._systems.shared.switches.reset(fields.choice("system", SYSTEMS) if fields.has("system") else None)
        return {}

    async def _list_calls(self, _: Fields, __: Mapping[str, str]) -> Any:
        journal = self._systems.shared.journal
        return {"calls": [asdict(call) for call in journal.calls], "complaints": list(journal.complaints)}

    async def _clear_calls(self, fields: Fields, _: Mapping[str, str]) -> Any:
        """Forget the calls; complaints stay."""
        fields.require_known(set())
        self._systems.shared.journal.calls.clear()
        return {}

    async def _await_answers(self, fields: Fields, _: Mapping[str, str]) -> Any:
        """Wait until `count` answers of a system are held."""
        fields.require_known({"system", "count", "seconds"})
        system, count = fields.choice("system", SYSTEMS), fields.whole("count", 1, most=_TIMES_MAX)
        try:
            async with asyncio.timeout(fields.seconds("seconds", _AWAITED_S)):
                await self._systems.shared.held.until_held(system, count)
        except TimeoutError:
            raise ControlRefused("fewer answers are held", 409) from None
        return {}

    async def _release_answers(self, fields: Fields, _: Mapping[str, str]) -> Any:
        fields.require_known({"system"})
        self._systems.shared.held.release(fields.choice("system", SYSTEMS))
        return {}

    async def _list_deliveries(self, _: Fields, __: Mapping[str, str]) -> Any:
        return {"webhooks": [_render(delivery) for delivery in self._systems.deliveries.newest_first()]}

    async def _hold(self, fields: Fields, _: Mapping[str, str]) -> Any:
        fields.require_known({"system"})
        self._systems.deliveries.held.add(fields.choice("system", SYSTEMS))
        return {}

    async def _release(self, fields: Fields, _: Mapping[str, str]) -> Any:
        fields.require_known({"system"})
        deliveries = self._systems.deliveries
        system = fields.choice("system", SYSTEMS)
        deliveries.held.discard(system)
        for delivery in reversed(deliveries.newest_first()):
            if delivery.state == "held" and delivery.notice.system == system and delivery.notice.url:
                deliveries.send_again(delivery)
        return {}

    async def _settle(self, _: Fields, __: Mapping[str, str]) -> Any:
        await self._systems.deliveries.settle()
        return {}

    async def _send_again(self, _: Fields, path: Mapping[str, str]) -> Any:
        delivery = self._systems.deliveries.find(path["id"])
        if delivery is None or not delivery.notice.url:
            raise ControlRefused("there is no such webhook", 404)
        self._systems.deliveries.send_again(delivery)
        return _render(delivery)


def _serve(do: Do) -> Any:
    async def serve(request: Request) -> Response:
        try:
            fields = await read_fields(request)
            answer = await do(fields, request.path_params)
        except ControlRefused as refused:
            return JSONResponse({"error": str(refused)}, refused.status)
        if not fields.is_form:
            return JSONResponse(answer)
        back = fields.text("back", "/")
        return redirect(back if back.startswith("/") and not back.startswith(("//", "/\\")) else "/")

    return serve


def _render(delivery: Delivery) -> dict[str, Any]:
    notice = delivery.notice
    return {
        "id": delivery.id,
        "system": notice.system,
        "label": notice.label,
        "method": notice.method,
        "url": notice.url,
        "body": notice.body.decode(),
        "state": delivery.state,
        "attempts": delivery.attempts,
    }
