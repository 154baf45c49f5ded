"""Calls of the accounting system: finding third parties, finding invoices, and making drafts.

External references of invoices need not be unique, so the caller searches before it makes a draft. Error bodies may
hold SQL and are never read. Numbers come as strings, and are read as decimals.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import httpx2
import msgspec

from soundmark.core.providers.dolibarr.server import AccountingServer
from soundmark.kit.http.tls import make_tls_context
from soundmark.kit.postgres.database import assert_no_transaction

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


@dataclass(frozen=True, slots=True)
class FoundInvoice:
    """An invoice in the accounting system; `total` includes tax."""

    id: int
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
    ref_ext: str
    socid: int
    total_ttc: Decimal


class _Thirdparty(msgspec.Struct, frozen=True):
    id: int


class AccountingClient:
    """A client of whichever accounting system the platform settings name at the moment of a call.

    Each call ends within ten seconds, connecting and reading included.
    """

    def __init__(self, *, extra_ca_file: Path | None) -> None:
        self._client: Final = httpx2.AsyncClient(
            # It may answer in encodings that nobody asked for, if it may choose one at all.
            headers={"accept": _JSON_TYPE, "accept-encoding": "identity"},
            timeout=httpx2.Timeout(_TIMEOUT_S),
            verify=make_tls_context(extra_ca_file),
            trust_env=False,
            follow_redirects=False,
        )

    async def has_thirdparty(self, server: AccountingServer, thirdparty_id: int) -> bool:
        """Return whether the accounting system has this third party.

        Raises: AccountingCallFailed.
        """
        status, body = await self._call(server, "GET", f"/thirdparties/{thirdparty_id}")
        if status == HTTPStatus.NOT_FOUND:
            return False
        return _read(_require_ok(status, body), _Thirdparty).id == thirdparty_id

    async def find_invoices(self, server: AccountingServer, reference: str) -> list[FoundInvoice]:
        """Return the invoices with this external reference, at most two of them.

        Raises: AccountingCallFailed.
        """
        # In a path, the reference's colon would be taken for an attack.
        query = {
            "sqlfilters": f"(t.ref_ext:=:'{reference}')",
            "properties": _MEMBERS,
            "limit": str(_MATCHES_MAX),
        }
        status, body = await self._call(server, "GET", "/invoices", query=query)
        invoices = _read(_require_ok(status, body), list[_InvoiceAnswer])
        if any(invoice.ref_ext != reference for invoice in invoices):
            raise AccountingCallFailed("filter_ignored")
        return [_found(invoice) for invoice in invoices]

    async def create_draft(self, server: AccountingServer, draft: NewDraft) -> int:
        """Make a draft invoice and return its id.

        Raises: AccountingCallFailed. The draft may have been made all the same, so search before the next attempt.
        """
        status, body = await self._call(server, "POST", "/invoices", content=_write(draft))
        return _require_id(_read(_require_ok(status, body), int))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _call(
        self,
        server: AccountingServer,
        method: Literal["GET", "POST"],
        path: str,
        *,
        query: dict[str, str] | None = None,
        content: bytes | None = None,
    ) -> tuple[int, bytes]:
        """Send a request; return the status and the body of a JSON response.

        Raises: AccountingCallFailed.
        """
        assert_no_transaction("a call to the accounting system")
        headers = {"dolapikey": server.api_key.reveal()}
        if server.entity_id is not None:
            headers["dolapientity"] = str(server.entity_id)
        if content is not None:
            headers["content-type"] = _JSON_TYPE
        sending = self._client.stream(method, server.url + path, params=query, content=content, headers=headers)
        try:
            # The client's own timeout bounds each step; this one bounds their sum.
            async with asyncio.timeout(_TIMEOUT_S), sending as response:
                # A page in HTML has status 200 if the module is off, and 403 if the request looks like an attack.
                if response.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON_TYPE:
                    raise AccountingCallFailed("not_json", response.status_code)
                return response.status_code, await _read_body(response)
        except (TimeoutError, httpx2.TimeoutException):
            raise AccountingCallFailed("deadline") from None
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise AccountingCallFailed("unreachable") from None
        except UnicodeEncodeError:
            raise AccountingCallFailed("unusable_key") from None


async def _read_body(response: httpx2.Response) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.aiter_raw():
        size += len(chunk)
        if size > _BYTES_MAX:
            raise AccountingCallFailed("oversized", response.status_code)
        chunks.append(chunk)
    return b"".join(chunks)


def _require_ok(status: int, body: bytes) -> bytes:
    if status != HTTPStatus.OK:
        raise AccountingCallFailed("status", status)
    return body


def _read(body: bytes, shape: type[T]) -> T:
    """Return the named members of a JSON document, in which numbers may be strings."""
    try:
        return msgspec.json.decode(body, type=shape, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # Without the library's text, which may repeat the response.
        raise AccountingCallFailed("malformed") from None


def _found(invoice: _InvoiceAnswer) -> FoundInvoice:
    if not invoice.total_ttc.is_finite() or abs(invoice.total_ttc) >= _TOTAL_MAX:
        raise AccountingCallFailed("malformed")
    return FoundInvoice(_require_id(invoice.id), invoice.socid, invoice.total_ttc)


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
