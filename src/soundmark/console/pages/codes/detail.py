"""One Code: everything about it, its verification, its sound, and its revocation."""

import asyncio
import re
from typing import Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from soundmark_sdk import KeySet, verify_signed_code
from soundmark_sdk.client.records import Code
from soundmark_sdk.failures import Unverifiable
from starlette.responses import Response

from soundmark.console.downloads import answer_download
from soundmark.console.intents import find_link, write_headline, write_json
from soundmark.console.lookups import find_campaign_name, find_integration_beside
from soundmark.console.offline_packs import PACK_VALIDITY_MAX, ValidPacks, find_valid_packs
from soundmark.console.parts import read_part
from soundmark.console.qr_codes import draw_qr_code
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit
from soundmark.kit.text.validation import is_loopback_host

Protocol: TypeAlias = Literal[3, 4, 5]
PROTOCOLS: Final[tuple[Protocol, ...]] = (4, 3, 5)  # The default first.
Verdict: TypeAlias = Literal["verified", "refused", "unknown"]

_XR_ID: Final = re.compile(r"xr_[A-Za-z0-9_-]{16,128}")


async def show(visit: Visit) -> Response:
    """Show what one Code does, its sound, and whether its signature holds."""
    code, keys = await asyncio.gather(_get_code(visit), read_part(visit.core.get_key_history()))
    is_just_revoked = visit.may_manage and _is_just_revoked(visit, code)
    packs, campaign_name, integration_name = await asyncio.gather(
        _find_packs(visit, code, is_asked_for=is_just_revoked),
        find_campaign_name(visit, code),
        _find_integration_name(visit, code),
    )
    listen_url = f"{visit.console.addresses.console}/listen"
    return visit.page(
        "codes/detail.html",
        code=code,
        what=write_headline(code.intent),
        campaign_name=campaign_name,
        integration_name=integration_name,
        now=visit.console.clock.now(),
        resource=write_json(code.intent.resource),
        link=find_link(code.intent),
        signed=write_json(code.signed_code),
        verdict=_verify(code, keys),
        is_just_revoked=is_just_revoked,
        packs=packs,
        keys_url=f"{visit.console.addresses.core}/v1/keys/history",
        protocols=PROTOCOLS,
        protocol=read_protocol(visit),
        listen_url=listen_url,
        is_listen_local=is_loopback_host(urlsplit(listen_url).hostname or ""),
        draw_qr_code=draw_qr_code,
    )


async def send_sound(visit: Visit) -> Response:
    """Send the sound of an active Code as a WAV file."""
    xr_id, protocol = _read_xr_id(visit), read_protocol(visit)
    # Core finds a Code in the whole organisation; the URL names its project.
    await _get_code(visit)
    return await answer_download(
        visit,
        lambda into: visit.core.codes.wav(xr_id, into, protocol=protocol),
        f"{xr_id}.wav",
        "audio/wav",
    )


async def show_revocation(visit: Visit) -> Response:
    """Show the Code that would be revoked, and ask for confirmation."""
    visit.require_managing_role()
    code = await _get_code(visit)
    packs, campaign_name = await asyncio.gather(
        _find_packs(visit, code, is_asked_for=code.status == "active"), find_campaign_name(visit, code)
    )
    return visit.page(
        "codes/revoke.html", code=code, what=write_headline(code.intent), campaign_name=campaign_name, packs=packs
    )


async def revoke(visit: Visit) -> Response:
    """Revoke one Code."""
    await _get_code(visit)
    code = await visit.core.codes.revoke(_read_xr_id(visit))
    notice = "codes.revoked" if code.status == "revoked" else "codes.had_expired"
    return visit.redirect(f"{visit.tenant_path}/codes/{code.xr_id}", notice)


def check_xr_id(text: str) -> str:
    """Return the id of a Code.

    Raises: TenantUnknown for a text that is no id: there is no such page.
    """
    if _XR_ID.fullmatch(text) is None:
        raise TenantUnknown
    return text


def read_protocol(visit: Visit) -> Protocol:
    """Return the protocol in the URL, and the default one for anything else."""
    text = visit.query("protocol") or ""
    return cast("Protocol", int(text)) if text in {str(each) for each in PROTOCOLS} else PROTOCOLS[0]


async def _get_code(visit: Visit) -> Code:
    return await visit.core.codes.show(_read_xr_id(visit), project_id=visit.project_id)


async def _find_integration_name(visit: Visit, code: Code) -> str | None:
    if code.audience_integration_id is None:
        return None
    integration = await find_integration_beside(visit, code.audience_integration_id)
    return None if integration is None else integration.name


def _is_just_revoked(visit: Visit, code: Code) -> bool:
    """Return whether an offline pack that has the Code may still be valid."""
    return code.revoked_at is not None and visit.console.clock.now() - code.revoked_at < PACK_VALIDITY_MAX


async def _find_packs(visit: Visit, code: Code, *, is_asked_for: bool) -> ValidPacks | None:
    """Return the offline packs that may name a Code; no pack has measured ones."""
    if code.audience_enabled:
        return ValidPacks((), is_complete=True)
    packs = await find_valid_packs(visit, campaign_id=code.campaign_id) if is_asked_for else None
    return None if packs is None else packs.holding(code)


def _verify(code: Code, keys: KeySet | None) -> Verdict:
    """Return whether the signed Code is authentic and belongs to the Code's token; unknown without Core's keys."""
    if keys is None:
        return "unknown"
    try:
        verify_signed_code(code.signed_code, keys, token=code.broadcast_token)
    except Unverifiable:
        return "refused"
    return "verified"


def _read_xr_id(visit: Visit) -> str:
    return check_xr_id(visit.parameter("xr_id"))
