"""An agent at a venue: what is heard while the service goes, time passes and Codes end."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from soundmark_sdk.client import ClientFailure
from support.studio.playout_lines import NOON, TEN_MINUTES, at, make_source
from support.studio.playout_service import UNREACHABLE, problem
from support.studio.playout_venue import Venue

from soundmark.studio.play.agent import PlayRefused
from soundmark.studio.play.playout import Line
from soundmark.studio.play.records import CampaignState
from soundmark.studio.play.schedule import Schedule
from soundmark.studio.play.state_file import SavedState

FAULTS = [
    pytest.param(UNREACHABLE, id="unreachable"),
    pytest.param(problem(503, "database_unavailable"), id="503"),
    pytest.param(problem(502, "unknown"), id="a proxy's 502"),
    pytest.param(problem(404, "unknown"), id="a proxy's 404"),
    pytest.param(problem(403, "unknown"), id="a proxy's 403"),
    pytest.param(problem(429, "rate_limited", retry_after_s=5), id="429"),
    pytest.param(problem(409, "resource_deletion_in_progress"), id="409"),
]


async def test_it_plays_and_says_so_without_the_token(venue: Venue) -> None:
    await venue.begin()
    assert venue.room.heard == [1]
    assert venue.said == ["playing xr_1, valid until 2026-11-27 12:05:00Z"]
    health = venue.journal.health
    assert (health.status, health.reason, health.xr_id, health.held_until) == ("playing", None, "xr_1", at(days=1))
    assert (venue.count("playing"), venue.count("healthy"), venue.count("service_reachable")) == (1, 1, 1)
    await venue.turn()
    assert venue.count("sounds_total") == 1
    assert len(venue.said) == 1


async def test_codes_in_turn_are_announced_once(tmp_path: Path) -> None:
    venue = Venue(tmp_path, [Line("xr_1"), Line("xr_2")])
    for number in (1, 2):
        venue.service.add(make_source(number))
    await venue.begin()
    for _ in range(5):
        await venue.turn()
    assert venue.room.heard == [1, 2, 1, 2, 1, 2]
    assert [line.split(",")[0] for line in venue.said] == ["playing xr_1", "playing xr_2"]


# The service is gone, in each state.


@pytest.mark.parametrize("fault", FAULTS)
async def test_what_is_held_plays_on_without_the_service(venue: Venue, fault: ClientFailure) -> None:
    await venue.begin()
    venue.service.fault = fault
    assert await venue.turn(hours=23) == 1
    venue.service.fault = None
    venue.service.statuses["xr_1"] = "revoked"
    assert await venue.turn() == 0


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_rotation_plays_on_for_the_outage_and_no_longer(rotating: Venue, fault: ClientFailure) -> None:
    await rotating.begin()
    rotating.service.fault = fault
    heard = [rotating.room.heard[-1], *[await rotating.turn(minutes=10) for _ in range(4)]]
    assert heard == [100, 101, 102, 103, 0]
    assert rotating.journal.health.reason == "no Code is held for this time"
    rotating.service.fault = None
    assert await rotating.turn(minutes=2) > 103


async def test_an_outage_and_its_end_are_said_once(rotating: Venue) -> None:
    await rotating.begin()
    rotating.service.fault = UNREACHABLE
    for _ in range(3):
        await rotating.turn()
    assert not rotating.journal.health.is_service_reachable
    assert rotating.count("failures_total", code="unreachable") == 6  # Two Codes each time.
    rotating.service.fault = None
    await rotating.turn()
    about_service = [line for line in rotating.said if "service" in line]
    assert about_service == [
        "the service cannot be asked: Nothing answers at http://127.0.0.1:9 (connection refused)",
        "the service answers again",
    ]


@pytest.mark.parametrize("fault", [UNREACHABLE, problem(503, "database_unavailable")])
async def test_it_does_not_begin_with_nothing_in_hand(venue: Venue, fault: ClientFailure) -> None:
    venue.service.fault = fault
    with pytest.raises(PlayRefused, match="nothing is held from an earlier run"):
        await venue.begin()


async def test_after_a_power_cut_it_goes_on_without_the_service(rotating: Venue) -> None:
    await rotating.begin()
    rotating.service.fault = UNREACHABLE
    rotating.restart()
    await rotating.begin()
    assert rotating.room.heard[-1] == 100
    assert await rotating.turn(minutes=10) == 101


async def test_the_service_may_go_while_a_campaign_has_not_begun(festival: Venue) -> None:
    festival.service.campaigns["cmp_1"] = CampaignState(at(hours=1), None, is_archived=False)
    await festival.begin()
    festival.service.fault = UNREACHABLE
    assert await festival.turn(minutes=59) == 0
    assert festival.journal.health.status == "waiting"
    assert await festival.turn(minutes=1) == 0
    assert festival.journal.health.status == "silent"
    festival.service.fault = None
    assert await festival.turn() == 1


async def test_a_known_campaign_ends_on_time_without_the_service(festival: Venue) -> None:
    festival.service.campaigns["cmp_1"] = CampaignState(None, at(hours=1), is_archived=False)
    await festival.begin()
    festival.service.fault = UNREACHABLE
    assert await festival.turn(minutes=59) == 1
    assert await festival.turn(minutes=1) == 0
    assert festival.playout.is_over


# Kills and restarts.


async def test_a_restart_issues_nothing_twice(rotating: Venue) -> None:
    """A supervisor that restarts it in a loop must not use up the quota."""
    await rotating.begin()
    for _ in range(3):
        rotating.restart()
        await rotating.begin()
    assert (len(rotating.service.issued), rotating.service.quota_left) == (4, 96)


async def test_a_death_before_the_state_was_saved_gets_the_same_codes(rotating: Venue) -> None:
    await rotating.begin()
    rotating.state_file.save(SavedState("agent"))
    rotating.restart()
    await rotating.begin()
    assert rotating.service.issue_count == 8
    assert len(rotating.service.issued) == 4


async def test_a_clock_that_was_set_back_changes_neither_slots_nor_expiry(rotating: Venue) -> None:
    await rotating.begin()
    await rotating.turn(minutes=10)
    rotating.service.fault = UNREACHABLE
    rotating.clock.frozen_at = NOON - timedelta(days=3)
    rotating.restart()
    await rotating.begin()
    assert rotating.room.heard[-1] == 101


# Revocation, expiry and ends.


async def test_a_revoked_code_stops_in_the_next_round(venue: Venue) -> None:
    await venue.begin()
    venue.service.statuses["xr_1"] = "revoked"
    assert await venue.turn() == 0
    await venue.agent.run()
    assert venue.said[-1] == "ended: xr_1 was revoked"


async def test_a_revoked_source_takes_its_successors_with_it(rotating: Venue) -> None:
    await rotating.begin()
    rotating.service.statuses["xr_1"] = "revoked"
    assert await rotating.turn() == 0
    assert sorted(rotating.service.revoked) == ["xr_100", "xr_101", "xr_102", "xr_103"]
    assert rotating.count("revoked_total") == 4


async def test_codes_that_could_not_be_revoked_are_revoked_when_the_service_is_back(rotating: Venue) -> None:
    await rotating.begin()
    rotating.service.fault = UNREACHABLE
    await rotating.agent.finish()
    assert rotating.said[-1] == ("3 Codes were issued ahead and not revoked; they expire by 2026-11-26 12:41:00Z")
    rotating.service.fault = None
    rotating.restart()
    await rotating.begin()
    assert sorted(rotating.service.revoked) == ["xr_101", "xr_102", "xr_103"]


async def test_a_clean_end_revokes_what_was_issued_ahead_and_did_not_sound(rotating: Venue) -> None:
    await rotating.begin()
    await rotating.agent.finish()
    assert sorted(rotating.service.revoked) == ["xr_101", "xr_102", "xr_103"]
    assert not rotating.room.is_open
    saved = rotating.state_file.read()
    assert saved is not None
    assert [held.xr_id for held in saved.lines["xr_1"].held] == ["xr_100"]


async def test_after_a_clean_end_it_issues_anew(rotating: Venue) -> None:
    """The service would answer a repeated request with the Code that was revoked at the end."""
    await rotating.begin()
    await rotating.agent.finish()
    rotating.restart()
    await rotating.begin()
    assert [rotating.room.heard[-1], await rotating.turn(minutes=10)] == [100, 104]


async def test_a_death_while_it_ends_plays_nothing_that_was_revoked(
    rotating: Venue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rotating.begin()

    async def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rotating.service, "revoke", die)
        with pytest.raises(KeyboardInterrupt):
            await rotating.agent.finish()
    rotating.restart()
    await rotating.begin()
    assert await rotating.turn(minutes=10) == 104
    assert sorted(rotating.service.revoked) == ["xr_101", "xr_102", "xr_103"]


@pytest.mark.parametrize(
    ("status", "reason"),
    [("revoked", "xr_1 was revoked"), ("expired", "xr_1 has expired"), (None, "xr_1 does not exist")],
)
async def test_it_does_not_begin_with_a_code_that_is_not_active(venue: Venue, status: Any, reason: str) -> None:
    del venue.service.statuses["xr_1"]
    if status is not None:
        venue.service.statuses["xr_1"] = status
    with pytest.raises(PlayRefused, match=reason):
        await venue.begin()


# The schedule.


async def test_it_is_silent_outside_its_schedule_and_says_so(tmp_path: Path) -> None:
    """Health stays good: this silence is as planned."""
    venue = Venue(tmp_path, [Line("xr_1")], TEN_MINUTES, Schedule.parse(["12:10-12:20", "15:00-15:10"], "UTC"))
    venue.service.add(make_source())
    await venue.begin()
    assert (venue.room.heard, venue.said[0]) == ([0], "this issues 2 Codes a day; 100 are left of this month's quota")
    assert venue.said[1] == "waiting: outside its schedule until 2026-11-26 12:10:00Z"
    assert (venue.count("healthy"), venue.count("playing"), venue.count("in_schedule")) == (1, 0, 0)
    assert len(venue.service.issued) == 1
    assert await venue.turn(minutes=5) == 100
    assert (venue.count("in_schedule"), venue.journal.health.status) == (1, "playing")
    assert await venue.turn(minutes=10) == 0
    assert venue.journal.health.reason == "outside its schedule until 2026-11-26 15:00:00Z"
    assert len(venue.service.issued) == 1


async def test_a_key_that_may_not_issue_is_refused_before_it_opens(tmp_path: Path) -> None:
    venue = Venue(tmp_path, [Line("xr_1")], TEN_MINUTES, Schedule.parse(["04:00-05:00"], "UTC"))
    venue.service.add(make_source())
    venue.service.issue_fault = problem(403, "insufficient_scope")
    with pytest.raises(PlayRefused, match="the key may not issue Codes"):
        await venue.begin()
