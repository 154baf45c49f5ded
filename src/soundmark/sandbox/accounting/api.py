"""The accounting system's REST API, with its firewall and its search."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from decimal import InvalidOperation
from typing import Any, Final
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from soundmark.kit.http.requests.bearer_auth import read_bearer
from soundmark.sandbox.accounting.ledger import (
    UNIT_DECIMALS,
    DraftInvoice,
    InvoiceLine,
    Ledger,
    ThirdParty,
    text_of,
)
from soundmark.sandbox.operation import Api, Handler, Shared
from soundmark.sandbox.options import PREFIXES

_BASE: Final = PREFIXES["accounting"] + "/api/index.php"
# The firewall's pattern for paths, whether encoded or not.
_FORBIDDEN: Final = re.compile("[:;\"'<>?(){}$%#]")
_CONDITION: Final = re.compile(r"\(t\.(\w+):(=|like):'?([^')]*)'?\)")
# What Soundmark sends of an invoice and of its line.
_MEMBERS: Final = {"socid", "type", "date", "ref_ext", "lines"}
_LINE_MEMBERS: Final = {"desc", "qty", "subprice", "tva_tx", "product_type", "date_start", "date_end"}
_JOINED: Final = re.compile(r"(?:\(t\.[^()]*\))(?: and \(t\.[^()]*\))*", re.IGNORECASE)
_LIMIT_DEFAULT: Final = 100
_MODULE_OFF: Final = "<!doctype html><html><body>Module <b>Api</b> must be enabled</body></html>"
_REFUSED: Final = "<!doctype html><html><body>Access refused by the firewall.</body></html>"
# Errors of the database show its text.
_SQL: Final = (
    "Cannot add or update a child row: a foreign key constraint fails (`dolibarr`.`llx_facture`, "
    "CONSTRAINT `fk_facture_fk_soc` FOREIGN KEY (`fk_soc`) REFERENCES `llx_societe` (`rowid`))"
)
_REASONS: Final = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found"}


class _Refused(Exception):
    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response: Final = response


class AccountingApi:
    """The operations of the API."""

    def __init__(self, ledger: Ledger, api_key: str, shared: Shared, *, entity: int, refusal_pause_s: float) -> None:
        self._ledger: Final = ledger
        self._require: Final = shared.journal.require
        self._api_key: Final = api_key
        self._entity: Final = entity
        self._refusal_pause_s: Final = refusal_pause_s
        self._api: Final = Api("accounting", _BASE, shared, self._pass, make_error)

    def routes(self) -> list[Route]:
        """Return the routes, each with the name by which switches know it."""
        route = self._api.route
        return [
            route("GET", "/thirdparties/{id:int}", "read_third_party", self._read_third_party),
            route("POST", "/invoices", "create_invoice", self._create_invoice),
            route("GET", "/invoices", "find_invoices", self._find_invoices),
            route("GET", "/invoices/{id:int}", "read_invoice", self._read_invoice),
            route("GET", "/invoices/ref_ext/{ref_ext:path}", "read_invoice_by_ref_ext", self._read_by_ref_ext),
            route("GET", "/{path:path}", "other", self._refuse_unknown),
            route("POST", "/{path:path}", "other", self._refuse_unknown),
        ]

    async def _pass(self, request: Request, handler: Handler) -> Response:
        self._check_head(request)
        raw_path = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1")
        if _FORBIDDEN.search(unquote(raw_path)) or '"' in unquote(request.url.query):
            return HTMLResponse(_REFUSED, 403)
        if not self._ledger.choices.is_module_on:
            return HTMLResponse(_MODULE_OFF)
        if not self._is_authorised(request):
            # The real system pauses as well, against guessing.
            await asyncio.sleep(self._refusal_pause_s)
            return make_error(401, "Failed to login to API. No parameter 'HTTP_DOLAPIKEY' on HTTP header (and in URL).")
        try:
            return await handler(request)
        except _Refused as refused:
            return refused.response

    def _check_head(self, request: Request) -> None:
        """Note a key that a log would keep, and the acceptance of encodings that the system then gets wrong."""
        self._require(self._api_key not in request.url.query, "accounting: the key is in the address")
        accepted = set(re.findall("[a-z]+", request.headers.get("accept-encoding", "")))
        self._require(accepted.isdisjoint({"br", "bz"}), "accounting: br or bz is an accepted encoding")

    def _is_authorised(self, request: Request) -> bool:
        return self._api_key in {request.headers.get("dolapikey"), read_bearer(request.scope["headers"])}

    def _entity_of(self, request: Request) -> int:
        text = request.headers.get("dolapientity", str(self._entity))
        if not text.isdecimal():
            raise _Refused(make_error(400, "Bad Request: entity"))
        return int(text)

    async def _read_third_party(self, request: Request) -> Response:
        party = self._ledger.third_parties.find(str(request.path_params["id"]))
        if party is None or party.entity != self._entity_of(request):
            return make_error(404, "Not Found: Thirdparty not found")
        self._require_sight()
        return JSONResponse(render_third_party(party))

    async def _create_invoice(self, request: Request) -> Response:
        fields = await _read_json(request)
        self._check_draft(fields)
        if "socid" not in fields:
            return make_error(400, "Bad Request: socid field missing")
        entity = self._entity_of(request)
        try:
            third_party_id = int(fields["socid"])
            lines = [self._ledger.add_line(line) for line in fields.get("lines", [])]
            party = self._ledger.third_parties.find(str(third_party_id))
            if party is None or party.entity != entity:
                return make_error(500, "Internal Server Error: Error creating invoice")
            invoice = self._ledger.add_invoice(entity, third_party_id, fields, lines)
        except (ValueError, TypeError, AttributeError, InvalidOperation):
            return make_error(400, "Bad Request: invalid value")
        return JSONResponse(invoice.id)  # A bare number.

    def _check_draft(self, fields: Mapping[str, Any]) -> None:
        """Note what the system takes, but Soundmark must not send."""
        lines = fields.get("lines")
        line = lines[0] if isinstance(lines, list) and lines and isinstance(lines[0], dict) else {}
        different = sorted((fields.keys() ^ _MEMBERS) | (line.keys() ^ _LINE_MEMBERS))
        self._require(not different, f"accounting: these members are missing or unexpected: {different}")
        for name in ("subprice", "tva_tx"):
            decimals = str(line.get(name)).partition(".")[2]
            self._require(len(decimals) <= UNIT_DECIMALS, f"accounting: {name} has more decimals than are kept")

    async def _find_invoices(self, request: Request) -> Response:
        query = request.query_params
        self._require({"properties", "limit"} <= query.keys(), "accounting: a search has no properties or no limit")
        conditions = _read_conditions(query.get("sqlfilters", ""))
        found = [
            render_invoice(invoice)
            for invoice in self._ledger.invoices
            if invoice.entity == self._entity_of(request) and _matches(invoice, conditions)
            if not self._ledger.choices.is_user_restricted
        ]
        limit, page = query.get("limit", str(_LIMIT_DEFAULT)), query.get("page", "0")
        if not limit.isdecimal() or not page.isdecimal():
            return make_error(400, "Bad Request: limit")
        first = int(page) * int(limit)
        found = found[first : first + int(limit)] if int(limit) else found
        properties = [name for name in query.get("properties", "").split(",") if name]
        return JSONResponse([_select(invoice, properties) for invoice in found])

    async def _read_invoice(self, request: Request) -> Response:
        invoice = self._ledger.invoices.find(str(request.path_params["id"]))
        return self._answer_invoice(request, invoice)

    async def _read_by_ref_ext(self, request: Request) -> Response:
        wanted = request.path_params["ref_ext"]
        found = [invoice for invoice in self._ledger.invoices if invoice.ref_ext == wanted]
        return self._answer_invoice(request, found[0] if found else None)

    def _answer_invoice(self, request: Request, invoice: DraftInvoice | None) -> Response:
        if invoice is None or invoice.entity != self._entity_of(request):
            return make_error(404, "Not Found: Invoice not found")
        self._require_sight()
        return JSONResponse(render_invoice(invoice))

    def _require_sight(self) -> None:
        """Refuse a user who may not see third parties of others, nor their invoices."""
        if self._ledger.choices.is_user_restricted:
            raise _Refused(make_error(403, "Forbidden: Access not allowed for login svc"))

    async def _refuse_unknown(self, _: Request) -> Response:
        return make_error(404)


def make_error(status: int, message: str | None = None) -> Response:
    """Return an error in the shape of the API's framework."""
    source = "api_invoices.class.php:100 at call stage"
    stages = {"success": ["get", "route", "negotiate", "authenticate", "validate"], "failure": ["call", "message"]}
    error: dict[str, Any] = {"code": status, "message": message or _REASONS.get(status, "Error")}
    if status == 500:  # noqa: PLR2004 - HTTP's own number
        error["0"] = _SQL
    return JSONResponse({"error": error, "debug": {"source": source, "stages": stages}}, status)


async def _read_json(request: Request) -> dict[str, Any]:
    """Return the members of the body; a fraction is text with the digits that were sent."""
    try:
        fields = json.loads(await request.body(), parse_float=str)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise _Refused(make_error(400, "Bad Request: Error parsing JSON"))
    return fields


def _read_conditions(text: str) -> Sequence[tuple[str, str, str]]:
    if text and _JOINED.fullmatch(text) is None:
        raise _Refused(make_error(400, f"Bad Request: Error when validating parameter sqlfilters -> {text}"))
    return _CONDITION.findall(text)


def _matches(invoice: DraftInvoice, conditions: Sequence[tuple[str, str, str]]) -> bool:
    """Return whether all conditions hold. The database compares without regard to case."""
    columns = {
        "rowid": str(invoice.id),
        "ref_ext": invoice.ref_ext,
        "ref_client": invoice.ref_client,
        "fk_soc": str(invoice.third_party_id),
        "fk_statut": "0",
    }
    for column, operator, value in conditions:
        if column not in columns:
            raise _Refused(make_error(503, "Service Unavailable: Error when retrieving invoice list"))
        held = columns[column]
        if held is None or (operator == "=" and held.lower() != value.lower()):
            return False
        if operator == "like":
            found = re.fullmatch(re.escape(value).replace("%", ".*").replace("_", "."), held, re.IGNORECASE)
            if found is None:
                return False
    return True


def _select(invoice: Mapping[str, Any], properties: Sequence[str]) -> dict[str, Any]:
    return {name: invoice[name] for name in properties if name in invoice} if properties else dict(invoice)


def render_third_party(party: ThirdParty) -> dict[str, Any]:
    """Return a third party as the API writes it: numbers are texts."""
    return {
        "id": str(party.id),
        "ref": str(party.id),
        "entity": str(party.entity),
        "name": party.name,
        "name_alias": "",
        "status": "1" if party.is_active else "0",
        "client": "1",
        "prospect": 0,
        "fournisseur": "0",
        "code_client": f"CU2611-{party.id:05d}",
        "code_fournisseur": None,
        "country_id": "10",
        "country_code": "TN",
        "email": None,
        "phone": None,
        "address": "",
        "zip": "",
        "town": "",
        "tva_assuj": "1",
        "ref_ext": None,
        "array_options": [],
    }


def render_invoice(invoice: DraftInvoice) -> dict[str, Any]:
    """Return a draft as the API writes it: numbers are texts, times are not."""
    return {
        "id": str(invoice.id),
        "ref": f"(PROV{invoice.id})",
        "ref_ext": invoice.ref_ext,
        "ref_client": invoice.ref_client,
        "entity": str(invoice.entity),
        "socid": str(invoice.third_party_id),
        "type": str(invoice.type),
        "status": "0",
        "statut": "0",
        "paye": "0",
        "date": invoice.date,
        "date_creation": int(invoice.created_at.timestamp()),
        "date_validation": "",
        "total_ht": text_of(invoice.total_without_tax),
        "total_tva": text_of(invoice.total_with_tax - invoice.total_without_tax),
        "total_ttc": text_of(invoice.total_with_tax),
        "multicurrency_code": None,
        "lines": [_render_line(invoice, number, line) for number, line in enumerate(invoice.lines, 1)],
        "array_options": [],
    }


def _render_line(invoice: DraftInvoice, number: int, line: InvoiceLine) -> dict[str, Any]:
    return {
        "id": str(invoice.id * 100 + number),
        "rang": str(number),
        "desc": line.description,
        "qty": f"{line.quantity.normalize():f}",
        "subprice": text_of(line.unit_price),
        "tva_tx": f"{line.tax_rate:.4f}",
        "product_type": str(line.product_type),
        "date_start": line.starts_at,
        "date_end": line.ends_at,
        "total_ht": text_of(line.total_without_tax),
        "total_tva": text_of(line.total_with_tax - line.total_without_tax),
        "total_ttc": text_of(line.total_with_tax),
    }
