"""What sounds, given the time, what is held and what the service said."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from support.studio.playout_lines import (
    NOON,
    TEN_MINUTES,
    at,
    fill,
    make_held,
    make_line,
    make_source,
    what_sounds,
)

from soundmark.studio.play.playout import Line, Playout
from soundmark.studio.play.records import CampaignState, CodeStatus, Sounding
from soundmark.studio.play.schedule import Schedule

OPEN = CampaignState(None, None, is_archived=False)


def make_campaign_line(**changes: object) -> Line:
    """Return the line of a campaign whose Code is found."""
    return Line("cmp_1", campaign_id="cmp_1", campaign=OPEN, source=make_source(campaign_id="cmp_1", **changes))


def test_codes_sound_in_turn() -> None:
    playout = Playout([make_line(1), make_line(2)], None)
    assert [what_sounds(playout, NOON) for _ in range(3)] == ["xr_1", "xr_2", "xr_1"]


def test_a_code_sounds_until_it_expires() -> None:
    playout = Playout([make_line(expires_at=at(minutes=1))], None)
    assert what_sounds(playout, at(seconds=59)) == "xr_1"
    assert what_sounds(playout, at(minutes=1)) is None
    playout.pass_time(at(minutes=1))
    assert playout.is_over
    assert playout.lines[0].ended == "xr_1 has expired"


@pytest.mark.parametrize("status", ["revoked", "expired", "gone"])
def test_a_code_that_is_not_active_any_more_is_cut_off_and_ends_its_line(status: CodeStatus) -> None:
    playout = Playout([make_line(1), make_line(2)], None)
    sounding = playout.choose(NOON)
    assert sounding is not None
    playout.learn_status("xr_1", "active")
    assert playout.may_sound(sounding, NOON)
    playout.learn_status("xr_1", status)
    assert not playout.may_sound(sounding, NOON)
    assert [what_sounds(playout, NOON) for _ in range(2)] == ["xr_2", "xr_2"]
    assert not playout.is_over


def test_a_refused_key_silences_everything_until_it_is_accepted() -> None:
    """Without the service's answers, no revocation could be learnt of."""
    playout = Playout([make_line()], TEN_MINUTES)
    fill(playout, NOON)
    playout.refusal = "the service refuses the key"
    assert what_sounds(playout, NOON) is None
    assert playout.explain_silence(NOON) == "the service refuses the key"
    assert not playout.is_waiting(NOON)
    playout.refusal = None
    assert what_sounds(playout, NOON) == "xr_100"


@pytest.mark.parametrize(
    ("starts_at", "ends_at", "now", "is_heard"),
    [
        (None, None, NOON, True),
        (at(hours=1), None, NOON, False),
        (at(hours=1), None, at(hours=1), True),
        (None, at(hours=1), at(minutes=59), True),
        (None, at(hours=1), at(hours=1), False),
    ],
)
@pytest.mark.parametrize("follows", [True, False])
def test_a_campaign_s_codes_sound_while_it_runs(
    starts_at: datetime | None, ends_at: datetime | None, now: datetime, is_heard: bool, follows: bool
) -> None:
    playout = Playout([make_campaign_line() if follows else make_line(campaign_id="cmp_1")], None)
    playout.learn_campaign("cmp_1", CampaignState(starts_at, ends_at, is_archived=False))
    assert (what_sounds(playout, now) is not None) == is_heard
    assert playout.is_waiting(now) == (starts_at is not None and now < starts_at)
    playout.pass_time(now)
    assert playout.is_over == (ends_at is not None and ends_at <= now)


def test_silence_before_a_campaign_says_when_it_begins() -> None:
    playout = Playout([make_campaign_line()], None)
    playout.learn_campaign("cmp_1", CampaignState(at(hours=1), None, is_archived=False))
    assert playout.explain_silence(NOON) == "the campaign begins at 2026-11-26 13:05:00Z"


@pytest.mark.parametrize("state", [None, replace(OPEN, is_archived=True)])
def test_a_campaign_that_was_archived_or_deleted_ends_its_lines(state: CampaignState | None) -> None:
    playout = Playout([make_campaign_line(), make_line(2)], None)
    playout.learn_campaign("cmp_1", state)
    assert [line.ended is not None for line in playout.lines] == [True, False]
    assert what_sounds(playout, NOON) == "xr_2"


def test_a_campaign_goes_on_with_a_code_that_does_not_expire_before_the_last_one() -> None:
    """Codes that another agent issued with the intent of the last one all expire before it."""
    playout = Playout([make_campaign_line()], None)
    playout.learn_status("xr_1", "revoked")
    (line,) = playout.lines
    assert (line.source, line.source_from, line.ended) == (None, at(days=1), None)
    assert playout.explain_silence(NOON) == "the campaign has no active Code"
    line.source = make_source(2, campaign_id="cmp_1")
    assert what_sounds(playout, NOON) == "xr_2"


def test_a_rotation_wants_this_slot_and_those_that_begin_within_the_outage() -> None:
    playout = Playout([make_line(1), make_line(2)], TEN_MINUTES)
    wanted = list(playout.list_wanted(NOON))
    assert [(each.line, each.slot - TEN_MINUTES.slot_at(NOON)) for each in wanted] == [
        (line, slot) for slot in range(4) for line in (0, 1)
    ]
    # Each slot ends at a multiple of ten minutes, and its Code expires a minute later.
    assert [each.expires_at for each in wanted[::2]] == [at(minutes=6 + 10 * slot) for slot in range(4)]
    fill(playout, NOON)
    assert list(playout.list_wanted(NOON)) == []
    assert len(list(playout.list_wanted(at(minutes=10)))) == 2


def test_rotated_codes_follow_one_another() -> None:
    playout = Playout([make_line()], TEN_MINUTES)
    ids = fill(playout, NOON)
    assert [what_sounds(playout, at(minutes=10 * slot)) for slot in range(5)] == [*ids, None]


def test_a_sound_that_began_in_its_slot_is_played_to_its_end() -> None:
    playout = Playout([make_line()], TEN_MINUTES)
    fill(playout, NOON)
    sounding = playout.choose(at(minutes=4, seconds=59))
    assert sounding is not None
    assert playout.may_sound(sounding, at(minutes=5, seconds=1))
    assert playout.list_watched(at(minutes=5, seconds=1)) == ["xr_1", "xr_100", "xr_101"]


def test_no_rotated_code_outlives_its_source_or_begins_after_the_campaign() -> None:
    playout = Playout([make_line(expires_at=at(minutes=16))], TEN_MINUTES)
    assert [each.expires_at for each in playout.list_wanted(NOON)] == [
        at(minutes=6),
        at(minutes=15, seconds=59),
        at(minutes=15, seconds=59),
    ]
    playout = Playout([make_campaign_line()], TEN_MINUTES)
    playout.learn_campaign("cmp_1", CampaignState(None, at(minutes=10), is_archived=False))
    assert len(list(playout.list_wanted(NOON))) == 2


def test_nothing_is_issued_before_a_campaign_begins_or_while_the_key_is_refused() -> None:
    playout = Playout([make_campaign_line()], TEN_MINUTES)
    playout.learn_campaign("cmp_1", CampaignState(at(minutes=1), None, is_archived=False))
    assert list(playout.list_wanted(NOON)) == []
    assert list(playout.list_wanted(at(minutes=1))) != []
    playout.refusal = "refused"
    assert list(playout.list_wanted(at(minutes=1))) == []


def test_when_the_source_is_revoked_all_codes_with_its_intent_are_given_up() -> None:
    playout = Playout([make_line()], TEN_MINUTES)
    ids = fill(playout, NOON)
    assert what_sounds(playout, NOON) == ids[0]
    playout.learn_status("xr_1", "revoked")
    assert (what_sounds(playout, NOON), sorted(playout.discarded)) == (None, ids)
    playout.settle_discarded(ids)
    assert playout.discarded == {}


def test_a_rotated_code_that_was_revoked_is_silent_for_the_rest_of_its_slot() -> None:
    playout = Playout([make_line()], TEN_MINUTES)
    ids = fill(playout, NOON)
    playout.learn_status(ids[0], "revoked")
    assert [what_sounds(playout, at(minutes=minutes)) for minutes in (0, 5)] == [None, ids[1]]


def test_a_code_whose_source_has_gone_while_it_was_issued_is_given_up() -> None:
    playout = Playout([make_line()], TEN_MINUTES)
    wanted = next(playout.list_wanted(NOON))
    playout.learn_status("xr_1", "revoked")
    playout.hold(wanted, make_held(wanted, 100))
    assert list(playout.discarded) == ["xr_100"]


def test_at_the_end_what_has_not_sounded_is_given_up() -> None:
    playout = Playout([make_line()], TEN_MINUTES)
    ids = fill(playout, NOON)
    assert what_sounds(playout, NOON) == ids[0]
    playout.discard_unplayed()
    assert sorted(playout.discarded) == ids[1:]
    assert what_sounds(playout, NOON) == ids[0]


def test_codes_are_forgotten_once_they_have_expired() -> None:
    playout = Playout([make_line()], TEN_MINUTES)
    fill(playout, NOON)
    playout.discarded["xr_9"] = replace(next(iter(playout.lines[0].held.values())), xr_id="xr_9")
    assert what_sounds(playout, NOON) == "xr_100"
    playout.learn_status("xr_100", "revoked")
    playout.pass_time(at(minutes=6))
    assert len(playout.lines[0].held) == 3
    assert (playout.discarded, playout.sounded, playout.revoked) == ({}, set(), set())


def test_it_knows_how_long_it_can_go_on_without_the_service() -> None:
    playout = Playout([make_line(1), make_line(2)], TEN_MINUTES)
    assert playout.held_until(NOON) is None
    fill(playout, NOON)
    assert playout.held_until(NOON) == at(minutes=35)
    del playout.lines[1].held[TEN_MINUTES.slot_at(NOON) + 2]
    assert playout.held_until(NOON) == at(minutes=15)
    assert Playout([make_line()], None).held_until(NOON) == at(days=1)


def test_a_slot_is_the_same_after_a_restart() -> None:
    slot = TEN_MINUTES.slot_at(NOON)
    assert TEN_MINUTES.begin_of(slot) == at(minutes=-5)
    assert TEN_MINUTES.end_of(slot) == at(minutes=5)
    assert TEN_MINUTES.slot_at(at(minutes=5) - timedelta(microseconds=1)) == slot


def test_what_was_never_held_may_not_sound() -> None:
    assert not Playout([make_line()], None).may_sound(Sounding("xr_9", "", at(days=1)), NOON)


# Noon is a Thursday.
LUNCH = Schedule.parse(["Thu,Fri 12:00-12:20"], "UTC")


def test_outside_its_schedule_nothing_sounds_and_nothing_is_issued() -> None:
    playout = Playout([make_line(expires_at=at(days=2))], TEN_MINUTES, LUNCH)
    ids = fill(playout, NOON)
    # The one in whose slot it closes is the last before the next day.
    assert len(ids) == 2
    assert playout.held_until(NOON) == at(days=1, minutes=-5)
    sounding = playout.choose(at(minutes=14, seconds=59))
    assert sounding is not None
    assert not playout.may_sound(sounding, at(minutes=15))
    assert [what_sounds(playout, at(minutes=minutes)) for minutes in (0, 14, 15)] == [*ids, None]
    assert playout.is_waiting(at(minutes=15))
    assert playout.explain_silence(at(minutes=15)) == "outside its schedule until 2026-11-27 12:00:00Z"
    assert list(playout.list_wanted(at(minutes=15))) == []
    before_lunch = at(hours=23, minutes=25)
    assert [each.slot for each in playout.list_wanted(before_lunch)] == [TEN_MINUTES.slot_at(at(days=1, minutes=-5))]


def test_a_refused_key_is_said_outside_the_schedule_too() -> None:
    playout = Playout([make_line()], None, LUNCH)
    playout.refusal = "the service refuses the key"
    assert not playout.is_waiting(at(hours=1))
    assert playout.explain_silence(at(hours=1)) == "the service refuses the key"
