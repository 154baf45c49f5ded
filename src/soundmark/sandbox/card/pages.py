"""The card provider's pages: where a checkout is paid, and where a customer manages subscriptions."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from soundmark.sandbox.card import purchases, renewals
from soundmark.sandbox.card.book import CardBook
from soundmark.sandbox.card.invoices import PAYER
from soundmark.sandbox.card.purchases import SessionClosed
from soundmark.sandbox.card.records import CheckoutSession, PortalSession
from soundmark.sandbox.options import PREFIXES
from soundmark.sandbox.pages import read_form, redirect, render

_PAY: Final = PREFIXES["card"] + "/pay/{id}"
_PORTAL: Final = PREFIXES["card"] + "/portal/{id}"


class CardPages:
    """The hosted pages."""

    def __init__(self, book: CardBook) -> None:
        self._book: Final = book

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route(_PAY, self._show_checkout),
            Route(_PAY, self._act_on_checkout, methods=["POST"]),
            Route(_PORTAL, self._show_portal),
            Route(_PORTAL, self._act_in_portal, methods=["POST"]),
        ]

    async def _show_checkout(self, request: Request) -> Response:
        return self._checkout_page(request)

    async def _act_on_checkout(self, request: Request) -> Response:
        session = purchases.find_session(self._book, request.path_params["id"])
        form = await read_form(request)
        if session is None:
            return self._checkout_page(request)
        email = form.get("email") or PAYER
        try:
            match form.get("act"):
                case "pay":
                    purchases.pay(self._book, session, email)
                case "pay-later":
                    purchases.pay_later(self._book, session, email)
                case "cancel":
                    return redirect(session.cancel_url or session.success_url)
                case _:
                    return self._checkout_page(request, refusal="Your card was declined.")
        except SessionClosed:
            return self._checkout_page(request)
        return redirect(session.success_url.replace("{CHECKOUT_SESSION_ID}", session.id))

    def _checkout_page(self, request: Request, refusal: str = "") -> Response:
        session = purchases.find_session(self._book, request.path_params["id"])
        if session is None:
            return render("gone.html", status=404, what="This checkout does not exist.")
        if session.status != "open":
            return render("gone.html", what=f"This checkout is {session.status}.")
        return render(
            "card_checkout.html", leads_to=_leads_to(session), session=session, email=self._email(session),
            refusal=refusal,
        )  # fmt: skip

    def _email(self, session: CheckoutSession) -> str:
        customer = self._book.customers.find(session.customer_id or "")
        return (customer.email if customer else session.customer_email) or PAYER

    async def _show_portal(self, request: Request) -> Response:
        return self._portal_page(self._book.portal_sessions.find(request.path_params["id"]))

    async def _act_in_portal(self, request: Request) -> Response:
        portal = self._book.portal_sessions.find(request.path_params["id"])
        form = await read_form(request)
        subscription = self._book.subscriptions.find(form.get("subscription", ""))
        if portal is None or subscription is None or subscription.customer_id != portal.customer_id:
            return self._portal_page(portal, refusal="That subscription is not yours.")
        price = self._book.prices.find(form.get("price", ""))
        try:
            match form.get("act"):
                case "cancel-at-period-end" | "resume" | "end" as act:
                    renewals.ACTS[act](self._book, subscription)
                case "change-price" if price is not None and price.is_active:
                    renewals.change_price(self._book, subscription, price)
                case _:
                    return self._portal_page(portal, refusal="This cannot be done here.")
        except renewals.SubscriptionEnded:
            return self._portal_page(portal, refusal="That subscription has ended.")
        return self._portal_page(portal)

    def _portal_page(self, portal: PortalSession | None, refusal: str = "") -> Response:
        if portal is None:
            return render("gone.html", status=404, what="This page does not exist.")
        owned = [each for each in self._book.subscriptions.newest_first() if each.customer_id == portal.customer_id]
        prices = [price for price in self._book.prices if price.is_active]
        return render("card_portal.html", portal=portal, subscriptions=owned, prices=prices, refusal=refusal)


def _leads_to(session: CheckoutSession) -> tuple[str | None, str | None]:
    return session.success_url, session.cancel_url
