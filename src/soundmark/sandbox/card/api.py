"""The card provider's API, as its official SDK calls it."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from soundmark.kit.http.requests.bearer_auth import read_bearer
from soundmark.sandbox.card import purchases
from soundmark.sandbox.card.book import CardBook
from soundmark.sandbox.card.checkout import create_session, require_known
from soundmark.sandbox.card.complaints import check_headers, check_portal, check_session
from soundmark.sandbox.card.errors import CardError, invalid_param, make_error, missing_param, no_such
from soundmark.sandbox.card.form import MalformedForm, parse_form
from soundmark.sandbox.card.idempotency import IdempotencyKeys
from soundmark.sandbox.card.objects import (
    BASIL,
    Document,
    customer_object,
    list_object,
    portal_object,
    price_object,
    product_object,
)
from soundmark.sandbox.card.older_shape import to_older_shape
from soundmark.sandbox.card.records import CardEvent, CheckoutSession, PortalSession
from soundmark.sandbox.card.subscription_objects import invoice_object, lines_object, subscription_object
from soundmark.sandbox.operation import Api, Handler, Shared
from soundmark.sandbox.options import PREFIXES
from soundmark.sandbox.pages import own_url

Expand = Mapping[str, Callable[[], Document | None]]

_CREATED: Final = re.compile(r"\d{1,12}")
_PAGE_MAX: Final = 100


class CardApi:
    """The operations of the API."""

    def __init__(self, book: CardBook, secret_key: str, shared: Shared) -> None:
        self._book: Final = book
        self._secret_key: Final = secret_key
        self.keys: Final = IdempotencyKeys(book.clock)
        self._require: Final = shared.journal.require
        self._api: Final = Api("card", PREFIXES["card"], shared, self._pass, make_error)

    def routes(self) -> list[Route]:
        """Return the routes, each with the name by which switches know it."""
        route = self._route
        return [
            route("POST", "/v1/checkout/sessions", "create_session", self._create_session),
            route("GET", "/v1/checkout/sessions/{id}", "read_session", self._read_session),
            route("POST", "/v1/checkout/sessions/{id}/expire", "expire_session", self._expire_session),
            route("GET", "/v1/subscriptions/{id}", "read_subscription", self._read_subscription),
            route("GET", "/v1/invoices/{id}", "read_invoice", self._read_invoice),
            route("GET", "/v1/invoices/{id}/lines", "list_lines", self._list_lines),
            route("GET", "/v1/customers/{id}", "read_customer", self._read_customer),
            route("GET", "/v1/prices/{id}", "read_price", self._read_price),
            route("GET", "/v1/prices", "list_prices", self._list_prices),
            route("POST", "/v1/billing_portal/sessions", "open_portal", self._open_portal),
            route("GET", "/v1/events", "list_events", self._list_events),
            route("GET", "/v1/events/{id}", "read_event", self._read_event),
            route("GET", "/{path:path}", "other", self._refuse_unknown),
            route("POST", "/{path:path}", "other", self._refuse_unknown),
        ]

    def _route(self, method: str, path: str, name: str, handler: Handler) -> Route:
        """Return the route of an operation; one that reads answers what it was given for the path."""

        async def read(request: Request) -> Response:
            given = self._book.given.find(request.url.path.removeprefix(PREFIXES["card"]))
            if given is None:
                return await handler(request)
            if not given:
                raise no_such("object", request.url.path.rpartition("/")[2], param="id", status=404)
            return JSONResponse(given)

        return self._api.route(method, path, name, read if method == "GET" else handler)

    async def _pass(self, request: Request, handler: Handler) -> Response:
        request_id = self._book.mint("req_", 14)
        check_headers(self._require, request)
        try:
            self._authorise(request)
            response = await self.keys.apply(request, request_id, handler)
        except MalformedForm:
            self._require(False, "card: the form is malformed")
            response = CardError(400, "Invalid form body or query.").respond()
        except CardError as error:
            self._require(not error.is_careless, f"card: {error}")
            response = error.respond()
        response.headers["request-id"] = request_id
        response.headers["stripe-version"] = request.headers.get("stripe-version", BASIL)
        return response

    def _authorise(self, request: Request) -> None:
        key = read_bearer(request.scope["headers"])
        if key is None:
            raise CardError(401, "You did not provide an API key.")
        if key != self._secret_key:
            raise CardError(401, f"Invalid API Key provided: {key[:8]}****")

    async def _create_session(self, request: Request) -> Response:
        params = parse_form((await request.body()).decode())
        session = create_session(self._book, params, own_url(request, PREFIXES["card"]))
        check_session(self._require, params)
        return self._answer(self._book.render_session(session), params, self._expand_session(session))

    async def _read_session(self, request: Request) -> Response:
        session = self._get_session(request)
        return self._answer(
            self._book.render_session(session), parse_form(request.url.query), self._expand_session(session)
        )

    async def _expire_session(self, request: Request) -> Response:
        params = parse_form((await request.body()).decode())
        session = self._get_session(request)
        try:
            purchases.expire(self._book, session)
        except purchases.SessionClosed:
            message = f'Only Checkout Sessions with a status in ["open"] can be expired. This one is {session.status}.'
            raise CardError(400, message) from None
        return self._answer(self._book.render_session(session), params, self._expand_session(session))

    def _get_session(self, request: Request) -> CheckoutSession:
        session_id = request.path_params["id"]
        session = purchases.find_session(self._book, session_id)
        if session is None:
            raise no_such("checkout.session", session_id, param="session", status=404)
        return session

    async def _read_subscription(self, request: Request) -> Response:
        subscription = self._book.subscriptions.find(request.path_params["id"])
        if subscription is None:
            raise no_such("subscription", request.path_params["id"], param="id", status=404)
        expand: Expand = {
            "latest_invoice": lambda: self._invoice(subscription.latest_invoice_id),
            "customer": lambda: self._customer(subscription.customer_id),
        }
        return self._answer(subscription_object(subscription), parse_form(request.url.query), expand)

    async def _read_invoice(self, request: Request) -> Response:
        document = self._invoice(request.path_params["id"])
        if document is None:
            raise no_such("invoice", request.path_params["id"], param="invoice", status=404)
        expand: Expand = {"customer": lambda: self._customer(document["customer"])}
        return self._answer(document, parse_form(request.url.query), expand)

    async def _list_lines(self, request: Request) -> Response:
        invoice = self._book.invoices.find(request.path_params["id"])
        if invoice is None:
            raise no_such("invoice", request.path_params["id"], param="invoice", status=404)
        params = parse_form(request.url.query)
        require_known(params, {"limit"})
        return self._answer(lines_object(invoice, limit=_read_limit(params)), params, {})

    async def _read_customer(self, request: Request) -> Response:
        document = self._customer(request.path_params["id"])
        if document is None:
            raise no_such("customer", request.path_params["id"], param="id", status=404)
        return self._answer(document, parse_form(request.url.query), {})

    async def _read_price(self, request: Request) -> Response:
        price = self._book.prices.find(request.path_params["id"])
        if price is None:
            raise no_such("price", request.path_params["id"], param="price", status=404)
        return self._answer(
            price_object(price), parse_form(request.url.query), {"product": lambda: product_object(price)}
        )

    async def _list_prices(self, request: Request) -> Response:
        params = parse_form(request.url.query)
        require_known(params, {"limit"})
        found, limit = list(self._book.prices), _read_limit(params)
        page = [price_object(price) for price in found[:limit]]
        return JSONResponse(list_object("/v1/prices", page, has_more=len(found) > limit))

    async def _open_portal(self, request: Request) -> Response:
        params = parse_form((await request.body()).decode())
        require_known(params, {"customer", "return_url", "configuration", "locale", "flow_data", "expand"})
        customer_id = params.get("customer")
        if customer_id is None:
            raise missing_param("customer")
        check_portal(self._require, params)
        if self._book.customers.find(customer_id) is None:
            raise no_such("customer", customer_id, param="customer")
        portal_id = self._book.mint("bps_")
        portal = PortalSession(
            portal_id,
            customer_id,
            params.get("return_url"),
            params.get("locale"),
            self._book.clock.now(),
            f"{own_url(request, PREFIXES['card'])}/portal/{portal_id}",
        )
        return self._answer(portal_object(self._book.portal_sessions.add(portal_id, portal)), params, {})

    async def _list_events(self, request: Request) -> Response:
        params = parse_form(request.url.query)
        require_known(params, {"created", "type", "types", "limit", "starting_after", "ending_before"})
        limit = _read_limit(params)
        found = [event for event in self._book.events.newest_first() if _is_listed(event, params)]
        after = params.get("starting_after")
        if after is not None:
            places = [place for place, event in enumerate(found) if event.id == after]
            if not places:
                raise no_such("event", after, param="starting_after")
            found = found[places[0] + 1 :]
        page = [event.document for event in found[:limit]]
        return JSONResponse(list_object("/v1/events", page, has_more=len(found) > limit))

    async def _read_event(self, request: Request) -> Response:
        event = self._book.events.find(request.path_params["id"])
        if event is None:
            raise no_such("event", request.path_params["id"], param="id", status=404)
        return JSONResponse(event.document)

    async def _refuse_unknown(self, request: Request) -> Response:
        path = "/" + request.path_params["path"]
        self._require(False, f"card: there is no route {request.method} {path}")
        message = f"Unrecognized request URL ({request.method}: {path})."
        raise CardError(404, message)

    def _invoice(self, invoice_id: str | None) -> Document | None:
        invoice = self._book.invoices.find(invoice_id or "")
        return None if invoice is None else invoice_object(invoice)

    def _customer(self, customer_id: str | None) -> Document | None:
        customer = self._book.customers.find(customer_id or "")
        return None if customer is None else customer_object(customer)

    def _subscription(self, subscription_id: str | None) -> Document | None:
        subscription = self._book.subscriptions.find(subscription_id or "")
        return None if subscription is None else subscription_object(subscription)

    def _expand_session(self, session: CheckoutSession) -> Expand:
        return {
            "customer": lambda: self._customer(session.customer_id),
            "invoice": lambda: self._invoice(session.invoice_id),
            "subscription": lambda: self._subscription(session.subscription_id),
        }

    def _answer(self, document: Document, params: Mapping[str, Any], expand: Expand) -> Response:
        for name in params.get("expand", ()):
            if name not in expand:
                message = f"This property cannot be expanded ({name})."
                raise CardError(400, message)
            if document[name] is not None:
                document[name] = expand[name]()
        is_older = self._book.choices.api_shape != "basil"
        return JSONResponse(to_older_shape(document) if is_older else document)


def _is_listed(event: CardEvent, params: Mapping[str, Any]) -> bool:
    types = params.get("types") or ([params["type"]] if "type" in params else [])
    if types and event.type not in types:
        return False
    created = int(event.created_at.timestamp())
    bounds = params.get("created", {})
    if isinstance(bounds, str):
        return created == _read_number(params, "created", 0)
    return all(
        (
            created >= _read_number(bounds, "gte", 0),
            created > _read_number(bounds, "gt", -1),
            created <= _read_number(bounds, "lte", created),
            created < _read_number(bounds, "lt", created + 1),
        )
    )


def _read_limit(params: Mapping[str, Any]) -> int:
    limit = _read_number(params, "limit", 10)
    if not 1 <= limit <= _PAGE_MAX:
        raise invalid_param("limit", f"Invalid integer: {limit}")
    return limit


def _read_number(params: Mapping[str, Any], name: str, default: int) -> int:
    text = params.get(name, default)
    if isinstance(text, int):
        return text
    if not isinstance(text, str) or _CREATED.fullmatch(text) is None:
        raise invalid_param(name, f"Invalid integer: {text}")
    return int(text)
