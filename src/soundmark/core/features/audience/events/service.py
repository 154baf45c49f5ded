"""Finding the Audience that judges an event."""

from typing import Any, Final

import msgspec

from soundmark.core.channel.audience import AudienceChannel
from soundmark.core.context import RequestContext
from soundmark.core.domain.audience.integration import may_be_integration_id
from soundmark.kit.http.requests.strict_json import MalformedJson, parse_json
from soundmark.kit.http.responses.problems import MalformedBody, Unauthenticated


class _Claim(msgspec.Struct):
    integration_id: str


_decode: Final = msgspec.json.Decoder(_Claim).decode


async def find_audience_of_event(ctx: RequestContext, body: bytes) -> AudienceChannel:
    """Return the Audience of the integration that an event claims to be from, which judges it.

    A deployment without a file of cells has one, so nothing is read. Otherwise, Core refuses what no cell would accept:
    an event of an integration that is missing, malformed or unknown.

    Raises: MalformedBody; Unauthenticated; AudienceUnavailable; DatabaseUnavailable.
    Source: contract, section 6.
    """
    if not ctx.cells.is_divided:
        (audience,) = ctx.cells.open_all()
        return audience
    integration_id = _read_claim(body)
    if not isinstance(integration_id, str) or not may_be_integration_id(integration_id):
        raise Unauthenticated
    cell = await ctx.integration_cells.find(integration_id)
    if cell is None:
        raise Unauthenticated
    return ctx.cells.open(cell)


def _read_claim(body: bytes) -> Any:
    """Return the member `integration_id` as it was sent, of any type; None if it is missing.

    Of several, it may be any: the Audience that it leads to refuses the body.
    """
    try:
        return _decode(body).integration_id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # Perhaps it is not JSON, or no object, or the member is no string.
    try:
        value = parse_json(body)
    except MalformedJson as error:
        raise MalformedBody(f"The body is not well-formed JSON: {error}.") from None
    return value.get("integration_id") if isinstance(value, dict) else None
