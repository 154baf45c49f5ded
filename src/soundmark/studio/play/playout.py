"""Decide what sounds, given the time, the Codes that are held and what the service said. There is no I/O here.

A playout has a line for each Code or campaign that was named. A line looks for a source (a campaign's Code), has one,
or has ended for good. Its sounds are the source itself or, with a rotation, Codes issued with the source's intent, one
for each slot of time. What the service says ends lines and silences Codes; a service that cannot be reached says
nothing, so a line goes on with what it holds.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from soundmark.studio.play.records import CampaignState, CodeStatus, HeldCode, Sounding, SourceCode, WantedCode
from soundmark.studio.play.rotation import GRACE, Rotation
from soundmark.studio.play.schedule import ALWAYS, Schedule

_BEFORE_SOURCE: Final = timedelta(seconds=1)
_REASONS: Final[dict[CodeStatus, str]] = {
    "revoked": "was revoked",
    "expired": "has expired",
    "gone": "does not exist any more",
}


@dataclass(slots=True)
class Line:
    """What one name on the command line stands for: a Code, or the Codes of a campaign."""

    name: str
    campaign_id: str | None = None  # Given when the line follows a campaign.
    source: SourceCode | None = None
    campaign: CampaignState | None = None
    held: dict[int, HeldCode] = field(default_factory=dict)
    # The next source of a campaign may not expire before the last one did: Codes that another agent issued with the
    # intent of that one all do.
    source_from: datetime | None = None
    ended: str | None = None

    @property
    def watched_campaign_id(self) -> str | None:
        """The campaign whose dates decide whether this line sounds."""
        return self.campaign_id or (self.source.campaign_id if self.source is not None else None)

    def is_open(self, now: datetime) -> bool:
        """Return whether the line's campaign has begun and not ended."""
        if self.ended is not None:
            return False
        if self.campaign is None:
            return True
        starts_at, ends_at = self.campaign.starts_at, self.campaign.ends_at
        return (starts_at is None or starts_at <= now) and (ends_at is None or now < ends_at)


class Playout:
    """The state of an agent. Every change is a method; `now` is the service's time."""

    def __init__(self, lines: Iterable[Line], rotation: Rotation | None, schedule: Schedule = ALWAYS) -> None:
        self.lines: Final = list(lines)
        self.rotation: Final = rotation
        self.schedule: Final = schedule
        # Held Codes that will not sound: to revoke.
        self.discarded: Final[dict[str, HeldCode]] = {}
        # How often Codes were given up. The requests that replace them are new ones, not repetitions.
        self.generation = 0
        self.revoked: set[str] = set()
        self.sounded: set[str] = set()
        # Why the service refuses the credential. Without it no revocation can be learnt of, so nothing sounds.
        self.refusal: str | None = None
        self._turn = 0

    # What may sound.

    def choose(self, now: datetime) -> Sounding | None:
        """Return what sounds next, each line in its turn, or None for silence."""
        for offset in range(len(self.lines)):
            turn = (self._turn + offset) % len(self.lines)
            sounding = self._sounding_of(self.lines[turn], now)
            if sounding is not None and self.may_sound(sounding, now):
                self._turn = turn + 1
                self.sounded.add(sounding.xr_id)
                return sounding
        return None

    def may_sound(self, sounding: Sounding, now: datetime) -> bool:
        """Return whether what was chosen may still sound. At the end of its slot it may be played to its end."""
        if self.refusal is not None or sounding.xr_id in self.revoked or now >= sounding.until:
            return False
        if not self.schedule.is_open(now):
            return False
        return any(line.is_open(now) and _has(line, sounding.xr_id) for line in self.lines)

    def _sounding_of(self, line: Line, now: datetime) -> Sounding | None:
        if line.source is None:
            return None
        if self.rotation is None:
            return Sounding(line.source.xr_id, line.source.frame, line.source.expires_at)
        held = line.held.get(self.rotation.slot_at(now))
        return None if held is None else Sounding(held.xr_id, held.frame, held.expires_at)

    def explain_silence(self, now: datetime) -> str:
        """Return why nothing sounds, for a person."""
        if self.refusal is not None:
            return self.refusal
        if not self.schedule.is_open(now):
            return f"outside its schedule until {self.schedule.find_opening(now):%Y-%m-%d %H:%M:%SZ}"
        live = [line for line in self.lines if line.ended is None]
        waiting = [line.campaign.starts_at for line in live if self._is_early(line, now) and line.campaign is not None]
        if live and len(waiting) == len(live):
            return f"the campaign begins at {min(filter(None, waiting)):%Y-%m-%d %H:%M:%SZ}"
        if any(line.source is None for line in live):
            return "the campaign has no active Code"
        return "no Code is held for this time" if live else "everything has ended"

    def is_waiting(self, now: datetime) -> bool:
        """Return whether silence is what was asked for: the schedule is closed, or no campaign has begun yet."""
        is_early = all(self._is_early(line, now) or line.ended is not None for line in self.lines)
        return self.refusal is None and (is_early or not self.schedule.is_open(now))

    @staticmethod
    def _is_early(line: Line, now: datetime) -> bool:
        starts_at = None if line.campaign is None else line.campaign.starts_at
        return line.ended is None and starts_at is not None and now < starts_at

    @property
    def is_over(self) -> bool:
        """Whether nothing can ever sound again."""
        return all(line.ended is not None for line in self.lines)

    # What to ask the service.

    def list_watched(self, now: datetime) -> list[str]:
        """Return the Codes whose status decides what sounds now."""
        watched = [line.source.xr_id for line in self.lines if line.source is not None]
        watched += [held.xr_id for line in self.lines for held in self._sounding_held(line, now)]
        return list(dict.fromkeys(watched))

    def _sounding_held(self, line: Line, now: datetime) -> Iterator[HeldCode]:
        """Yield the held Code of this slot, and that of the slot before, which may be played to its end."""
        if self.rotation is not None:
            slot = self.rotation.slot_at(now)
            yield from (line.held[each] for each in (slot - 1, slot) if each in line.held)

    def list_wanted(self, now: datetime) -> Iterator[WantedCode]:
        """Yield the Codes to issue, those that sound first before the others."""
        if self.rotation is None or self.refusal is not None:
            return
        for slot in self.rotation.slots_ahead(now, self.schedule):
            for number, line in enumerate(self.lines):
                if line.source is None or not line.is_open(now) or slot in line.held:
                    continue
                wanted = self._want(number, slot, line, line.source)
                if wanted is not None:
                    yield wanted

    def _want(self, number: int, slot: int, line: Line, source: SourceCode) -> WantedCode | None:
        assert self.rotation is not None, "only a rotation has slots"
        begins_at = self.rotation.begin_of(slot)
        ends_at = None if line.campaign is None else line.campaign.ends_at
        # No rotated Code outlives its source, so a campaign's longest-lived Code is never a rotated one.
        expires_at = min(self.rotation.end_of(slot) + GRACE, source.expires_at - _BEFORE_SOURCE)
        if expires_at <= begins_at or (ends_at is not None and begins_at >= ends_at):
            return None
        return WantedCode(number, slot, source, expires_at)

    # What the service said, and what time did.

    def learn_status(self, xr_id: str, status: CodeStatus) -> None:
        """Take a Code's status: a source that is not active any more ends its line, or its turn in a campaign."""
        if status == "active":
            return
        self.revoked.add(xr_id)
        for line in self.lines:
            if line.source is not None and line.source.xr_id == xr_id:
                self._end_source(line, f"{xr_id} {_REASONS[status]}", with_sounded=status != "expired")

    def learn_campaign(self, campaign_id: str, state: CampaignState | None) -> None:
        """Take a campaign's dates. One that is archived, or that does not exist any more (None), ends its lines."""
        for line in self.lines:
            if line.watched_campaign_id != campaign_id or line.ended is not None:
                continue
            if state is None or state.is_archived:
                self._end(line, f"{campaign_id} {'does not exist' if state is None else 'was archived'}")
            else:
                line.campaign = state

    def hold(self, wanted: WantedCode, code: HeldCode) -> None:
        """Keep a Code that was issued. If its source has gone in the meantime, it is one to revoke."""
        line = self.lines[wanted.line]
        if line.source is None or line.source.xr_id != wanted.source.xr_id or line.ended is not None:
            self.discard([code])
        else:
            line.held[wanted.slot] = code

    def pass_time(self, now: datetime) -> None:
        """End what has expired, and forget Codes that are over: an agent runs for years."""
        for line in self.lines:
            if line.source is not None and line.source.expires_at <= now:
                self._end_source(line, f"{line.source.xr_id} has expired")
            ends_at = None if line.campaign is None else line.campaign.ends_at
            if line.ended is None and ends_at is not None and ends_at <= now:
                self._end(line, f"the campaign of {line.name} has ended")
            line.held = {slot: held for slot, held in line.held.items() if now < held.expires_at}
        for xr_id, held in list(self.discarded.items()):
            if held.expires_at <= now:
                del self.discarded[xr_id]
        known = {held.xr_id for line in self.lines for held in line.held.values()} | self.discarded.keys()
        known |= {line.source.xr_id for line in self.lines if line.source is not None}
        self.revoked &= known
        self.sounded &= known

    def _end_source(self, line: Line, reason: str, *, with_sounded: bool = False) -> None:
        assert line.source is not None, "there is a source to end"
        self._discard_held(line, with_sounded=with_sounded)
        line.source_from = line.source.expires_at
        if line.campaign_id is None:
            line.ended = reason
        else:
            line.source = None

    def _end(self, line: Line, reason: str) -> None:
        line.ended = reason
        self._discard_held(line)

    def _discard_held(self, line: Line, *, with_sounded: bool = False) -> None:
        """Give up Codes that were issued ahead.

        One that has sounded stays for those who have just heard it, and expires soon. If its source was revoked, it
        goes too.
        """
        given_up = {slot for slot, held in line.held.items() if with_sounded or held.xr_id not in self.sounded}
        self.discard(line.held[slot] for slot in given_up)
        line.held = {slot: held for slot, held in line.held.items() if slot not in given_up}

    # The end.

    def discard_unplayed(self) -> None:
        """Give up the Codes that were issued ahead and never sounded."""
        for line in self.lines:
            self._discard_held(line)

    def discard(self, codes: Iterable[HeldCode]) -> None:
        """Have Codes revoked."""
        given_up = {code.xr_id: code for code in codes}
        self.generation += bool(given_up)
        self.discarded.update(given_up)

    def settle_discarded(self, xr_ids: Iterable[str]) -> None:
        """Forget discarded Codes that are revoked, or that the service does not have."""
        for xr_id in xr_ids:
            self.discarded.pop(xr_id, None)

    def held_until(self, now: datetime) -> datetime | None:
        """Return until when every line that sounds can go on without the service; None if none can."""
        ends = [self._covered_until(line, now) for line in self.lines if line.is_open(now)]
        return min((end for end in ends if end is not None), default=None) if all(ends) else None

    def _covered_until(self, line: Line, now: datetime) -> datetime | None:
        if self.rotation is None or line.source is None:
            return None if line.source is None else line.source.expires_at
        openings = self.rotation.find_openings(now, self.schedule)
        until = next(opening for opening in openings if self.rotation.slot_at(opening) not in line.held)
        return None if until == now else until


def _has(line: Line, xr_id: str) -> bool:
    is_source = line.source is not None and line.source.xr_id == xr_id
    return is_source or any(held.xr_id == xr_id for held in line.held.values())
