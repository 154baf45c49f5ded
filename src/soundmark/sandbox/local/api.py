"""The local provider's API, version 2."""

import json
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from soundmark.kit.http.requests.bearer_auth import read_bearer
from soundmark.sandbox.local.payments import Payment, Payments
from soundmark.sandbox.operation import Api, Handler, Shared
from soundmark.sandbox.options import PREFIXES
from soundmark.sandbox.pages import own_url

_LIFE_S: Final = 1200
_LIFE_MAX_S: Final = 7 * 24 * 3600
_AMOUNT_MAX: Final = 10**12
# What Soundmark sends: without a tracking id and an address of its own, a payment could not be told from another.
_MEMBERS: Final = {"amount", "success_link", "fail_link", "webhook", "developer_tracking_id"}


class LocalApi:
    """The operations of the API."""

    def __init__(self, payments: Payments, public_key: str, secret_key: str, shared: Shared) -> None:
        self._payments: Final = payments
        self._journal: Final = shared.journal
        self._credential: Final = f"{public_key}:{secret_key}"
        self._api: Final = Api("local", PREFIXES["local"], shared, self._pass, make_error)

    def routes(self) -> list[Route]:
        """Return the routes, each with the name by which switches know it."""
        return [
            self._api.route("POST", "/api/v2/generate_payment", "generate_payment", self._generate),
            self._api.route("GET", "/api/v2/verify_payment/{id}", "verify_payment", self._verify),
            Route(
                f"{PREFIXES['local']}/api/{{path:path}}", self._refuse_unknown, methods=["GET", "POST", "PUT", "DELETE"]
            ),
        ]

    async def _pass(self, request: Request, handler: Handler) -> Response:
        is_right = read_bearer(request.scope["headers"]) == self._credential
        self._journal.require(is_right, "local: the keys are wrong")
        if not is_right:
            return make_error(401)
        return await handler(request)

    async def _generate(self, request: Request) -> Response:
        try:
            body = json.loads(await request.body())
        except ValueError:
            self._journal.require(False, "local: the body is not JSON")
            return make_error(400)
        self._check(request, body)
        amount = _read_integer(body, "amount", None)
        life_s = _read_integer(body, "session_timeout_secs", _LIFE_S)
        success_link, fail_link = _read_text(body, "success_link"), _read_text(body, "fail_link")
        if amount is None or not 0 < amount < _AMOUNT_MAX or success_link is None or fail_link is None:
            return make_error(400)
        if life_s is None or not 0 < life_s <= _LIFE_MAX_S:
            return make_error(400)
        payment = self._payments.add(
            amount,
            success_link=success_link,
            fail_link=fail_link,
            webhook=_read_text(body, "webhook"),
            tracking_id=_read_text(body, "developer_tracking_id"),
            life_s=life_s,
            pages_url=own_url(request, PREFIXES["local"]),
        )
        result = {
            "success": True,
            "payment_id": payment.id,
            "link": payment.link,
            "developer_tracking_id": payment.tracking_id,
        }
        return JSONResponse({"result": result, "name": "developers", "code": 0, "version": "v2"})

    def _check(self, request: Request, body: Any) -> None:
        """Note what the provider takes, but Soundmark must not send."""
        media_type = request.headers.get("content-type")
        self._journal.require(media_type == "application/json", f"local: the media type is {media_type}")
        sent = body if isinstance(body, dict) else {}
        different = sorted(sent.keys() ^ _MEMBERS)
        self._journal.require(not different, f"local: these members are missing or unexpected: {different}")
        self._journal.require(type(sent.get("amount")) is int, "local: the amount is not an integer of millimes")

    async def _refuse_unknown(self, request: Request) -> Response:
        self._journal.require(False, f"local: there is no route {request.method} {request.url.path}")
        return make_error(404)

    async def _verify(self, request: Request) -> Response:
        self._journal.require(not await request.body(), "local: a question has a body")
        payment = self._payments.find(request.path_params["id"])
        if payment is None:
            return make_error(404)
        return JSONResponse(
            {
                "success": True,
                "result": _render(payment),
                "status_code": 200,
                "name": "developers",
                "code": 0,
                "version": "v2",
            }
        )


def make_error(status: int) -> Response:
    """Return an error; its body is not documented, so a caller goes by the status."""
    body = {"success": False, "status_code": status, "name": "developers", "code": 1, "version": "v2"}
    return JSONResponse(body, status)


def _render(payment: Payment) -> dict[str, Any]:
    is_paid = payment.status == "SUCCESS"
    return {
        "type": "card",
        "amount": payment.amount,
        "status": payment.status,
        "details": {
            "order_number": payment.id,
            "currency": "788",
            "pan": "423456******0000",
            "name": "Sandbox Payer",
            "phone_number": "+21600000000",
            "email": "payer@sandbox.example",
            "expiration": "203001",
        },
        "developer_tracking_id": payment.tracking_id,
        "settlement_status": "PROCESSING" if is_paid else "NOT_APPLICABLE",
        **payment.answer,
    }


def _read_text(body: Any, name: str) -> str | None:
    value = body.get(name) if isinstance(body, dict) else None
    return value if isinstance(value, str) else None


def _read_integer(body: Any, name: str, default: int | None) -> int | None:
    """Return a number; the provider's own examples also write numbers as text."""
    value = body.get(name, default) if isinstance(body, dict) else None
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 13:  # noqa: PLR2004 - as _AMOUNT_MAX
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
