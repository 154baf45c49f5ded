"""Calls of the accounting system: finding third parties, finding invoices, and making drafts.

External references of invoices need not be unique, so the caller searches before it makes a draft. Error bodies may
hold SQL and are never read. Numbers come as strings, and are read as decimals.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Literal, TypeVar
from urllib.parse import urlencode

import msgspec

from soundmark.core.providers.dolibarr.server import AccountingServer
from soundmark.kit.http.outbound.client import OutboundClient, OutboundRequest, OutboundResponse, RequestLost

# Contract, section 7: a third party is checked while an administrator waits. A wrong key takes a second, on purpose.
_TIMEOUT_S: Final = 10.0
_BYTES_MAX: Final = 1024 * 1024  # A third party has some 10 KiB, and two invoices with every member some 100 KiB.
_JSON_TYPE: Final = "application/json"
_ID_MAX: Final = 2**31 - 1  # Contract, section 7.
_TOTAL_MAX: Final = Decimal(10) ** 16  # Its column has 16 digits before the point.
_MEMBERS: Final = "id,ref_ext,socid,total_ttc"
_MATCHES_MAX: Final = 2  # Two are as wrong as twenty.

T = TypeVar("T")


class AccountingCallFailed(Exception):
    """The accounting system did not answer as documented; it may have acted all the same.

    `reason` is one of our own words and `status` that of the response, if there was one. Both are safe to log.
    """

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason: Final = reason
        self.status: Final = status

    @property
    def code(self) -> str:
        """The reason and the status in one word, as the operating guide lists them."""
        return self.reason if self.status is None else f"{self.reason}_{self.status}"

    @property
    def is_forbidden(self) -> bool:
        """Whether the accounting system knows our key, and its user lacks a right. A firewall answers no JSON."""
        return self.code == f"status_{HTTPStatus.FORBIDDEN}"


@dataclass(frozen=True, slots=True)
class FoundInvoice:
    """An invoice in the accounting system; `total` includes tax."""

    id: int
    reference: str | None
    thirdparty_id: int
    total: Decimal


@dataclass(frozen=True, slots=True)
class NewDraft:
    """A draft invoice with one line, whose price is without tax."""

    reference: str
    thirdparty_id: int
    date: datetime
    description: str
    price: Decimal
    tax_percent: Decimal
    period_start: datetime
    period_end: datetime


class _InvoiceAnswer(msgspec.Struct, frozen=True):
    id: int
    ref_ext: str | None
    socid: int
    total_ttc: Decimal


class _Thirdparty(msgspec.Struct, frozen=True):
    id: int


class AccountingClient:
    """A client of whichever accounting system the platform settings name at the moment of a call.

    Each call ends within ten seconds, connecting and reading included.
    """

    def __init__(self, *, extra_ca_file: Path | None) -> None:
        self._client: Final = OutboundClient(bytes_max=_BYTES_MAX, extra_ca_file=extra_ca_file)

    async def has_thirdparty(self, server: AccountingServer, thirdparty_id: int) -> bool:
        """Return whether the accounting system has this third party.

        Raises: AccountingCallFailed.
        """
        response = await self._call(server, "GET", f"/thirdparties/{thirdparty_id}")
        if response.status == HTTPStatus.NOT_FOUND:
            return False
        return _read(response, _Thirdparty).id == thirdparty_id

    async def find_invoices(self, server: AccountingServer, reference: str) -> list[FoundInvoice]:
        """Return the invoices with this external reference, at most two of them.

        Raises: AccountingCallFailed.
        """
        # In a path, the reference's colon would be taken for an attack.
        query = urlencode(
            {"sqlfilters": f"(t.ref_ext:=:'{reference}')", "properties": _MEMBERS, "limit": str(_MATCHES_MAX)}
        )
        response = await self._call(server, "GET", f"/invoices?{query}")
        invoices = _read(response, list[_InvoiceAnswer])
        if any(invoice.ref_ext != reference for invoice in invoices):
            raise AccountingCallFailed("filter_ignored")
        return [_found(invoice) for invoice in invoices]

    async def find_invoice(self, server: AccountingServer, invoice_id: int) -> FoundInvoice | None:
        """Return the invoice with this id; None if the accounting system has none.

        Raises: AccountingCallFailed. If it is forbidden, the invoice exists and our user may not see its third party.
        """
        response = await self._call(server, "GET", f"/invoices/{invoice_id}")
        if response.status == HTTPStatus.NOT_FOUND:
            return None
        invoice = _found(_read(response, _InvoiceAnswer))
        if invoice.id != invoice_id:
            raise AccountingCallFailed("malformed")
        return invoice

    async def create_draft(self, server: AccountingServer, draft: NewDraft) -> int:
        """Make a draft invoice and return its id.

        Raises: AccountingCallFailed. The draft may have been made all the same, so search before the next attempt.
        """
        response = await self._call(server, "POST", "/invoices", _write(draft))
        return _require_id(_read(response, int))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _call(
        self, server: AccountingServer, method: Literal["GET", "POST"], path: str, body: bytes | None = None
    ) -> OutboundResponse:
        """Send a request and return the response, whose body is JSON, whatever its status.

        Raises: AccountingCallFailed.
        """
        headers = {"dolapikey": server.api_key.reveal()}
        if server.entity_id is not None:
            headers["dolapientity"] = str(server.entity_id)
        if body is not None:
            headers["content-type"] = _JSON_TYPE
        request = OutboundRequest(method, server.url + path, headers, body)
        try:
            response = await self._client.send(request, timeout_s=_TIMEOUT_S)
        except RequestLost as lost:
            raise AccountingCallFailed(lost.reason) from None
        # A page in HTML has status 200 if the module is off, and 403 if the request looks like an attack.
        if response.media_type != _JSON_TYPE:
            raise AccountingCallFailed("not_json", response.status)
        return response


def _read(response: OutboundResponse, shape: type[T]) -> T:
    """Return the named members of the JSON document of a success, in which numbers may be strings.

    Raises: AccountingCallFailed.
    """
    if response.status != HTTPStatus.OK:
        raise AccountingCallFailed("status", response.status)
    try:
        return msgspec.json.decode(response.body, type=shape, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # Without the library's text, which may repeat the response.
        raise AccountingCallFailed("malformed") from None


def _found(invoice: _InvoiceAnswer) -> FoundInvoice:
    if not invoice.total_ttc.is_finite() or abs(invoice.total_ttc) >= _TOTAL_MAX:
        raise AccountingCallFailed("malformed")
    return FoundInvoice(_require_id(invoice.id), invoice.ref_ext, invoice.socid, invoice.total_ttc)


def _require_id(invoice_id: int) -> int:
    if not 1 <= invoice_id <= _ID_MAX:
        raise AccountingCallFailed("malformed")
    return invoice_id


def _write(draft: NewDraft) -> bytes:
    line: dict[str, Any] = {
        "desc": draft.description,
        "qty": 1,
        "subprice": draft.price,
        "tva_tx": draft.tax_percent,
        "product_type": 1,  # A service.
        "date_start": int(draft.period_start.timestamp()),
        "date_end": int(draft.period_end.timestamp()),
    }
    invoice = {
        "socid": draft.thirdparty_id,
        "type": 0,  # A standard invoice.
        "date": int(draft.date.timestamp()),
        "ref_ext": draft.reference,
        "lines": [line],
    }
    return msgspec.json.Encoder(decimal_format="number").encode(invoice)
