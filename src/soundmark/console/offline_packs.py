"""The offline packs that may still name a Code, as the audit log has them: Core keeps no list of packs."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from soundmark_sdk.client.records import Code
from soundmark_sdk.client.requests import AuditFilters
from starlette.responses import Response

from soundmark.console.parts import read_part
from soundmark.console.visit import Visit

_CREATED: Final = "offline_pack.created"
PACK_VALIDITY_MAX: Final = timedelta(days=1)  # Contract, section 12.
# One an hour for each of a dozen venues. Listing them delays the page by up to three calls.
_READ_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class OfflinePack:
    """A pack that receivers may still answer from. `campaign_id` None: of the whole project."""

    id: str
    campaign_id: str | None
    code_count: int
    issued_at: datetime
    valid_until: datetime


@dataclass(frozen=True, slots=True)
class ValidPacks:
    """The valid packs, the one that ends last first; without `is_complete`, there may be more of them."""

    packs: tuple[OfflinePack, ...]
    is_complete: bool

    @property
    def valid_until(self) -> datetime | None:
        """Until when a receiver may answer from one of them; None without any."""
        return self.packs[0].valid_until if self.packs else None

    def holding(self, code: Code) -> "ValidPacks":
        """Return those that may have a Code."""
        packs = (
            pack
            for pack in self.packs
            if pack.campaign_id in {None, code.campaign_id} and pack.issued_at >= code.issued_at
        )
        return ValidPacks(tuple(packs), self.is_complete)


async def find_valid_packs(visit: Visit, *, campaign_id: str | None = None) -> ValidPacks | None:
    """Return the valid packs of the project in the URL, of one campaign and the whole project or of all.

    None if Core cannot be asked, or is late, or refuses the audit log to this person.

    Raises: as `read_part`.
    """
    return await read_part(_collect_packs(visit, campaign_id))


async def _collect_packs(visit: Visit, campaign_id: str | None) -> ValidPacks:
    now = visit.console.clock.now()
    filters = AuditFilters(action=_CREATED, from_at=now - PACK_VALIDITY_MAX)
    read_count, packs = 0, []
    async for entry in visit.core.audit_log.list(filters):
        read_count += 1
        pack = _read_pack(entry.metadata, entry.created_at)
        is_asked_for = campaign_id is None or pack.campaign_id in {None, campaign_id}
        if is_asked_for and entry.project_id == visit.project_id and pack.valid_until > now:
            packs.append(pack)
        if read_count == _READ_MAX:
            break
    packs.sort(key=lambda pack: pack.valid_until, reverse=True)
    return ValidPacks(tuple(packs), is_complete=read_count < _READ_MAX)


def _read_pack(metadata: Any, issued_at: datetime) -> OfflinePack:
    return OfflinePack(
        metadata["pack_id"],
        metadata["campaign_id"],
        metadata["codes"],
        issued_at,
        datetime.fromisoformat(metadata["valid_until"]),
    )


def redirect_after_stop(
    visit: Visit, path: str, notice: str, *, packs_valid_until: datetime | None, **values: str | int
) -> Response:
    """Lead on with a notice, which says until when receivers may still answer from packs if there are any."""
    until = packs_valid_until
    still = "" if until is None else visit.say("offline_packs.still", until=visit.language.moment(until))
    return visit.redirect(path, notice, after=still, **values)
