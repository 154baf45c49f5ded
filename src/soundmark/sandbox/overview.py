"""The pages of the sandbox itself: what each system remembers, and buttons for what may happen to it."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from soundmark.sandbox.desk.conversations import STATUSES
from soundmark.sandbox.misbehaviour import KINDS, SYSTEMS
from soundmark.sandbox.options import ADDRESSES
from soundmark.sandbox.pages import own_url, render
from soundmark.sandbox.systems import Systems

_SHOWN_MAX: Final = 100


class Overview:
    """The pages; what their buttons do is at `/control`."""

    def __init__(self, systems: Systems) -> None:
        self._systems: Final = systems

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/", self._show_start),
            Route("/card", self._show_card),
            Route("/local", self._show_local),
            Route("/accounting", self._show_accounting),
            Route("/desk", self._show_desk),
            Route("/desk/conversations/{id}", self._show_conversation),
            Route("/deliveries", self._show_deliveries),
            Route("/switches", self._show_switches),
        ]

    async def _show_start(self, request: Request) -> Response:
        addresses = {f"SOUNDMARK_{name}": own_url(request, prefix) for name, prefix in ADDRESSES.items()}
        return render("start.html", addresses=addresses, core_url=self._systems.options.core_url)

    async def _show_card(self, _: Request) -> Response:
        book = self._systems.card
        return render(
            "card.html",
            choices=book.choices,
            prices=book.prices.newest_first()[:_SHOWN_MAX],
            sessions=book.sessions.newest_first()[:_SHOWN_MAX],
            subscriptions=book.subscriptions.newest_first()[:_SHOWN_MAX],
            events=book.events.newest_first()[:_SHOWN_MAX],
        )

    async def _show_local(self, _: Request) -> Response:
        local = self._systems.local
        return render("local.html", choices=local.choices, payments=local.newest_first()[:_SHOWN_MAX])

    async def _show_accounting(self, _: Request) -> Response:
        ledger = self._systems.accounting
        return render(
            "accounting.html",
            choices=ledger.choices,
            third_parties=list(ledger.third_parties),
            invoices=ledger.invoices.newest_first()[:_SHOWN_MAX],
        )

    async def _show_desk(self, _: Request) -> Response:
        desk = self._systems.desk
        return render("desk.html", choices=desk.choices, conversations=desk.all.newest_first()[:_SHOWN_MAX])

    async def _show_conversation(self, request: Request) -> Response:
        conversation = self._systems.desk.all.find(request.path_params["id"])
        if conversation is None:
            return render("gone.html", status=404, what="This conversation does not exist.")
        return render("conversation.html", conversation=conversation, statuses=STATUSES)

    async def _show_deliveries(self, _: Request) -> Response:
        deliveries = self._systems.deliveries
        shown = deliveries.newest_first()[:_SHOWN_MAX]
        return render("deliveries.html", deliveries=shown, held=deliveries.held, systems=SYSTEMS)

    async def _show_switches(self, _: Request) -> Response:
        switches = self._systems.shared.switches
        return render("switches.html", on=switches.list(), operations=switches.operations, kinds=KINDS)
