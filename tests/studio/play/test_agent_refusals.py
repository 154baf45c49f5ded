"""An agent at a venue: campaigns, and what is heard while the key, the quota, the disk and the sound card fail."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from soundmark_sdk.client import ClientFailure
from support.studio.playout_lines import TEN_MINUTES, at, make_source
from support.studio.playout_service import problem
from support.studio.playout_venue import Venue

from soundmark.studio.play.agent import PlayRefused
from soundmark.studio.play.outputs import OutputEnded, OutputLost
from soundmark.studio.play.playout import Line
from soundmark.studio.play.records import CampaignState
from soundmark.studio.play.state_file import SavedState, StateFile

OPEN = CampaignState(None, None, is_archived=False)


# Campaigns.


async def test_a_stopped_campaign_is_over(festival: Venue) -> None:
    await festival.begin()
    festival.service.statuses["xr_1"] = "revoked"
    festival.service.campaigns["cmp_1"] = CampaignState(None, None, is_archived=True)
    assert await festival.turn() == 0
    await festival.turn(seconds=20)
    assert festival.playout.lines[0].ended == "cmp_1 was archived"


async def test_a_campaign_without_a_code_waits_for_one(festival: Venue) -> None:
    festival.service.statuses["xr_1"] = "revoked"
    await festival.begin()
    assert festival.journal.health.reason == "the campaign has no active Code"
    festival.service.add(make_source(2, campaign_id="cmp_1"))
    assert await festival.turn() == 2


async def test_a_campaign_that_does_not_exist_is_refused(festival: Venue) -> None:
    del festival.service.campaigns["cmp_1"]
    with pytest.raises(PlayRefused, match=r"cmp_1 does not exist$"):
        await festival.begin()


async def test_two_agents_of_one_campaign_rotate_the_same_code(tmp_path: Path) -> None:
    """The second one takes the Code that expires last: never one that the first one issued."""
    first = Venue(tmp_path / "first", [Line("cmp_1", campaign_id="cmp_1")], TEN_MINUTES)
    second = Venue(tmp_path / "second", [Line("cmp_1", campaign_id="cmp_1")], TEN_MINUTES)
    second.service = first.service
    first.service.campaigns["cmp_1"] = OPEN
    first.service.add(make_source(campaign_id="cmp_1", expires_at=at(minutes=20)))
    for folder, venue, agent_id in ((tmp_path / "first", first, "a"), (tmp_path / "second", second, "b")):
        folder.mkdir()
        venue.state_file.save(SavedState(agent_id))
        venue.restart()
        await venue.begin()
    assert [venue.playout.lines[0].source for venue in (first, second)] == [first.service.sources["xr_1"]] * 2
    assert len(first.service.issued) == 6
    first.service.statuses["xr_1"] = "revoked"
    assert [await venue.turn() for venue in (first, second)] == [0, 0]
    assert len(set(first.service.revoked)) == 6
    assert [await venue.turn() for venue in (first, second)] == [0, 0]


# The key and the quota.


@pytest.mark.parametrize("fault", [problem(401, "unauthenticated"), problem(403, "insufficient_scope")])
async def test_a_refused_key_is_silence_until_it_is_accepted_again(rotating: Venue, fault: ClientFailure) -> None:
    await rotating.begin()
    rotating.service.fault = fault
    assert await rotating.turn() == 0
    assert rotating.said[-1].startswith("silent: the service refuses the key")
    assert not rotating.journal.health.is_good
    rotating.service.fault = None
    assert await rotating.turn() == 100


async def test_a_refused_key_does_not_begin(venue: Venue) -> None:
    venue.service.fault = problem(401, "unauthenticated")
    with pytest.raises(PlayRefused, match=r"the service refuses the key \(unauthenticated\)"):
        await venue.begin()


async def test_a_key_that_may_not_issue_does_not_begin_to_rotate(rotating: Venue) -> None:
    rotating.service.issue_fault = problem(403, "insufficient_scope")
    with pytest.raises(PlayRefused, match=r"the key may not issue Codes: insufficient_scope \(403\)"):
        await rotating.begin()


async def test_it_says_what_a_rotation_uses_of_the_quota(rotating: Venue) -> None:
    await rotating.begin()
    assert rotating.said[0] == "this issues 144 Codes a day; 100 are left of this month's quota"


async def test_a_used_up_quota_lets_what_is_held_play_on_and_is_tried_again(rotating: Venue) -> None:
    rotating.service.quota_left = 2
    await rotating.begin()
    assert rotating.said[-2:] == [
        "no Code can be issued: quota_exceeded (429)",
        "playing xr_100, valid until 2026-11-26 12:11:00Z",
    ]
    asked = rotating.service.issue_count
    assert await rotating.turn(minutes=10) == 101
    assert rotating.service.issue_count == asked
    rotating.service.quota_left = 100
    assert await rotating.turn(minutes=10) > 101
    assert "Codes are issued again" in rotating.said


@pytest.mark.parametrize(
    ("fault", "pause_s"),
    [
        (problem(409, "campaign_not_open"), 2),
        (problem(409, "idempotency_conflict"), 2),
        (problem(410, "code_expired"), 2),
        (problem(429, "rate_limited", retry_after_s=30), 30),
        (problem(429, "quota_exceeded", retry_after_s=1e6), 900),
        (problem(422, "validation_failed"), 2),
    ],
)
async def test_after_a_refused_issuance_there_is_a_pause(rotating: Venue, fault: ClientFailure, pause_s: float) -> None:
    await rotating.begin()
    rotating.service.issue_fault = fault
    await rotating.turn(minutes=10)
    asked = rotating.service.issue_count
    await rotating.turn(seconds=pause_s - 1)
    assert rotating.service.issue_count == asked
    await rotating.turn(seconds=1)
    assert rotating.service.issue_count == asked + 1


async def test_an_archived_campaign_ends_a_rotation_at_once(tmp_path: Path) -> None:
    venue = Venue(tmp_path, [Line("xr_1")], TEN_MINUTES)
    venue.service.campaigns["cmp_1"] = OPEN
    venue.service.add(make_source(campaign_id="cmp_1"))
    await venue.begin()
    await venue.turn(minutes=4, seconds=55)
    venue.service.campaigns["cmp_1"] = CampaignState(None, None, is_archived=True)
    venue.service.issue_fault = problem(409, "campaign_archived")
    assert await venue.turn(seconds=6) == 101
    assert await venue.turn() == 0
    assert venue.playout.is_over
    # The one that sounded last stays for those who have just heard it.
    assert sorted(venue.service.revoked) == ["xr_102", "xr_103"]


# The disk and the sound card.


async def test_a_full_disk_stops_neither_the_sound_nor_the_end(
    rotating: Venue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rotating.begin()

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(StateFile, "save", fail)
    assert await rotating.turn(minutes=10) == 101
    assert "the state cannot be saved: No space left on device" in rotating.said
    monkeypatch.undo()
    await rotating.turn()
    assert rotating.said[-1] == "the state is saved again"


async def test_it_does_not_begin_without_a_place_for_its_state(venue: Venue, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(StateFile, "save", fail)
    with pytest.raises(PlayRefused, match="the state cannot be saved: No space left on device"):
        await venue.begin()


async def test_a_sound_card_that_is_unplugged_is_looked_for(venue: Venue) -> None:
    await venue.begin()
    venue.room.fault = OutputLost("the sound card stopped: gone")
    await venue.agent.sound()
    assert venue.said[-1] == "silent: the sound card stopped: gone"
    assert not venue.journal.health.is_good
    await venue.agent.reopen()
    venue.room.fault = None
    await venue.agent.reopen()
    assert await venue.turn() == 1
    assert "the sound card plays again" in venue.said
    assert venue.journal.health.is_good


@pytest.mark.parametrize("fault", [OutputLost("no sound card"), OutputEnded("no sound card")])
async def test_it_does_not_begin_without_a_sound_card_and_issues_nothing(
    rotating: Venue, fault: OutputLost | OutputEnded
) -> None:
    rotating.room.fault = fault
    with pytest.raises(PlayRefused, match="no sound card"):
        await rotating.begin()
    assert rotating.service.issue_count == 0


async def test_a_reader_that_has_gone_ends_it_and_keeps_what_is_held(rotating: Venue) -> None:
    await rotating.begin()
    rotating.room.fault = OutputEnded("nothing reads standard output any more")
    with pytest.raises(PlayRefused, match="nothing reads standard output any more"):
        await rotating.agent.run()
    assert rotating.service.revoked == []
