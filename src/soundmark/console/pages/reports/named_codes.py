"""The Codes of a report by what they do: in its rows, and in its filter."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from itertools import islice
from typing import Final

from soundmark_sdk.client import ApiProblem, CodeFilters
from soundmark_sdk.client.records import ListedCode

from soundmark.console.intents import Headline, complete_prefix, write_headline
from soundmark.console.lookups import look_at_codes
from soundmark.console.parts import read_part
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit
from soundmark.kit.text.ids import may_be_id

_OFFERED_MAX: Final = 100  # One page of the newest.
_LOOKED_AT_MAX: Final = 8  # Of the older ones, which Core shows one by one.
_MATCHES_MAX: Final = 20


def read_code_name(visit: Visit) -> str | None:
    """Return what the filter has in place of the id of a Code, or None.

    Raises: TenantUnknown for dots, which would change the path of a call.
    """
    typed = visit.query("xr_id")
    if typed in {".", ".."}:
        raise TenantUnknown
    return None if typed is None or typed.startswith("xr_") else typed


async def find_newest(visit: Visit) -> dict[str, Headline]:
    """Return what the newest Codes of the project do, by their ids; nothing if the call fails or is late.

    Raises: as `read_part`.
    """
    call = visit.core.codes.page(CodeFilters(project_id=visit.project_id), include_intent=True, limit=_OFFERED_MAX)
    page = await read_part(call)
    return {} if page is None else _name(page.data)


async def find_by_address(visit: Visit, name: str) -> dict[str, Headline]:
    """Return the newest Codes whose address begins with a text.

    Raises: soundmark_sdk.ClientFailure.
    """
    filters = CodeFilters(project_id=visit.project_id, address_prefix=complete_prefix(name))
    try:
        page = await visit.core.codes.page(filters, include_intent=True, limit=_MATCHES_MAX)
    except ApiProblem as refused:
        if refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
            raise
        return {}  # No address begins like that.
    return _name(page.data)


def match_name(name: str, by_address: Mapping[str, Headline], newest: Mapping[str, Headline]) -> dict[str, Headline]:
    """Return the Codes found by their address, and those of the newest whose address or title holds a text."""
    wanted = name.casefold()
    holding = {
        xr_id: what
        for xr_id, what in newest.items()
        if wanted in f"{what.host or ''}{what.text} {what.title or ''}".casefold()
    }
    return dict(islice({**by_address, **holding}.items(), _MATCHES_MAX))


async def name_codes(visit: Visit, newest: Mapping[str, Headline], shown: Iterable[str]) -> dict[str, Headline]:
    """Return what the newest Codes do, and the first of those that are `shown` and not among them."""
    older = (each for each in dict.fromkeys(shown) if each not in newest and may_be_id(each))
    looked_at = await look_at_codes(visit, list(islice(older, _LOOKED_AT_MAX)))
    return {**newest, **_name(looked_at.values())}


def _name(codes: Iterable[ListedCode]) -> dict[str, Headline]:
    return {each.xr_id: write_headline(each.intent) for each in codes if each.intent is not None}
