"""The local provider's page: where a payment is made, refused or left."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from soundmark.sandbox.local.payments import Payments, add_query
from soundmark.sandbox.options import PREFIXES
from soundmark.sandbox.pages import read_form, redirect, render

_PAY: Final = PREFIXES["local"] + "/pay/{id}"
_OUTCOMES: Final = {"pay": "SUCCESS", "refuse": "FAILURE", "expire": "EXPIRED"}


class LocalPages:
    """The payment page."""

    def __init__(self, payments: Payments) -> None:
        self._payments: Final = payments

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [Route(_PAY, self._show), Route(_PAY, self._act, methods=["POST"])]

    async def _show(self, request: Request) -> Response:
        payment = self._payments.find(request.path_params["id"])
        if payment is None:
            return render("gone.html", status=404, what="This payment does not exist.")
        if payment.status != "PENDING":
            return render("gone.html", what=f"This payment is {payment.status}.")
        return render("local_payment.html", leads_to=(payment.success_link, payment.fail_link), payment=payment)

    async def _act(self, request: Request) -> Response:
        payment = self._payments.find(request.path_params["id"])
        outcome = _OUTCOMES.get((await read_form(request)).get("act", ""))
        if payment is None or payment.status != "PENDING" or outcome is None:
            return await self._show(request)
        payment.status = outcome
        if outcome == "EXPIRED":
            # Nobody is at the page to be sent back, and no notification is sent.
            return await self._show(request)
        self._payments.notify(payment)
        link = payment.success_link if outcome == "SUCCESS" else payment.fail_link
        return redirect(add_query(link, {"payment_id": payment.id}))
