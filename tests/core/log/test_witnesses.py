"""Witnesses of others cosign our checkpoints; who is slow, away or ahead; and who has seen another tree."""

from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.database.rival import Rival
from support.log.stored_log import StoredLog
from support.log.witnesses import TheirWitness
from support.processes.fake_clock import FakeClock

from soundmark.core.context import Context
from soundmark.core.domain.log.state import Transparency
from soundmark.core.features.log.integration.witnessing import Witnesses
from soundmark.core.providers import witnesses as client

from .conftest import Integrators
from .test_integration import queue_entries


async def grow(rival: Rival, integrator: Any, count: int = 3, prefix: str = "") -> None:
    await queue_entries(rival, count, prefix)
    await integrator.integrate_once()
    await integrator.ask_once()


async def test_every_witness_cosigns_what_it_is_asked_about(
    integrators: Integrators, witnesses: list[TheirWitness], stored: StoredLog, rival: Rival
) -> None:
    integrator = integrators(*(witness.ours for witness in witnesses), quorum=2)
    for size, prefix in ((5, "a"), (305, "b")):
        await grow(rival, integrator, size - (await stored.newest()).size, prefix)
        await integrator.finish_asking()
        assert (await stored.published()).size == size
        assert await stored.cosigners() == {witness.ours.key.name for witness in witnesses}
        assert [witness.size(stored.origin) for witness in witnesses] == [size] * 3


async def test_without_a_quorum_the_checkpoint_before_stands(
    integrators: Integrators, witnesses: list[TheirWitness], stored: StoredLog, rival: Rival, clock: FakeClock
) -> None:
    port = int(witnesses[0].url.rpartition(":")[2])
    witnesses[0].stop()
    integrator = integrators(*(witness.ours for witness in witnesses[:2]), quorum=2)
    with capture_logs() as logs:
        await grow(rival, integrator)
        assert (await stored.published()).size == 2
        clock.advance(seconds=11)
        await integrator.ask_once()
    assert [line["event"] for line in logs if line["event"] == "log_witness_absent"] == ["log_witness_absent"]
    witnesses[0].start(port)
    await integrator.ask_once()
    assert (await stored.published()).size == 2, "it was asked about it less than ten seconds ago"
    clock.advance(seconds=11)
    await integrator.ask_once()
    await integrator.finish_asking()
    assert (await stored.published()).size == 5
    assert len(await stored.cosigners()) == 2
    assert await rival.rows("SELECT size FROM log_checkpoints") == [(5,)]


async def test_a_slow_witness_delays_nobody_who_does_not_need_it(
    integrators: Integrators, witnesses: list[TheirWitness], stored: StoredLog, rival: Rival
) -> None:
    witnesses[-1].goes_on.clear()
    integrator = integrators(*(witness.ours for witness in witnesses), quorum=2)
    await grow(rival, integrator)
    assert (await stored.published()).size == 5
    assert len(await stored.cosigners()) == 2
    witnesses[-1].goes_on.set()
    await integrator.finish_asking()
    assert len(await stored.cosigners()) == 3, "its cosignature is added to what is published"


async def test_a_witness_that_is_not_there_in_time_does_not_count(
    integrators: Integrators,
    witnesses: list[TheirWitness],
    stored: StoredLog,
    rival: Rival,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "ANSWER_TIMEOUT_S", 0.2)
    witnesses[0].goes_on.clear()
    await grow(rival, integrators(witnesses[0].ours, quorum=1))
    assert (await stored.published()).size == 2


async def test_a_worker_that_died_before_it_stored_a_cosignature_is_continued(
    integrators: Integrators,
    witnesses: list[TheirWitness],
    stored: StoredLog,
    rival: Rival,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The witness is ahead of what is published, not of the tree; it cosigns the same bytes again."""
    died = integrators(witnesses[0].ours, quorum=1)

    async def die(*_: Any) -> None:
        pass

    monkeypatch.setattr(died._witnesses, "_store", die)
    await grow(rival, died)
    assert ((await stored.published()).size, witnesses[0].size(stored.origin)) == (2, 5)
    clock.advance(seconds=11)
    await integrators(witnesses[0].ours, quorum=1).ask_once()
    assert (await stored.published()).size == 5
    assert await stored.state() is None


async def test_a_tree_that_grew_meanwhile_is_cosigned_from_where_the_witness_is(
    integrators: Integrators, witnesses: list[TheirWitness], stored: StoredLog, rival: Rival
) -> None:
    """A new worker does not know what the witness has seen, and asks from the beginning."""
    await grow(rival, integrators(witnesses[0].ours), prefix="a")
    await grow(rival, integrators(witnesses[0].ours, quorum=1), 300, "b")
    assert (await stored.published()).size == witnesses[0].size(stored.origin) == 305


async def test_a_database_that_was_set_back_stops_the_log_before_and_after_it_grows_again(
    integrators: Integrators,
    witnesses: list[TheirWitness],
    stored: StoredLog,
    rival: Rival,
    subtests: pytest.Subtests,
) -> None:
    """The witness has seen more of the older tree, or another tree of the same or a larger size."""
    await grow(rival, integrators(witnesses[0].ours, quorum=1), 4, "seen")
    assert witnesses[0].size(stored.origin) == 6
    for added in (1, 4, 9):
        with subtests.test(added=added):
            await stored.set_back()
            with capture_logs() as logs:
                await grow(rival, integrators(witnesses[0].ours, quorum=1), added, f"other {added}")
            assert await stored.state() == "witness_conflict"
            assert (await stored.published()).size == 2, "nothing of the other tree is published"
            (line,) = [line for line in logs if line["event"] == "log_witness_conflict"]
            assert line["evidence"].startswith(f"{stored.origin}\n6\n")
            await queue_entries(rival, 1, "more")
            assert await integrators().integrate_once() == 0


async def test_numbers_of_a_witness_alone_stop_nothing(
    integrators: Integrators,
    witnesses: list[TheirWitness],
    stored: StoredLog,
    rival: Rival,
) -> None:
    """The body of a 409 is not signed, and a 422 may be the witness's own fault."""
    witness, integrator = witnesses[0], integrators(witnesses[0].ours, quorum=1)
    await grow(rival, integrator)
    for status, body in ((409, b"77\n"), (422, b"no\n"), (409, b"many\n"), (403, b""), (500, b""), (200, b"junk\n")):
        witness.answer = (status, body)
        await grow(rival, integrator, prefix=f"{status} {body!r}")
        assert await stored.state() is None
        assert (await stored.published()).size == 5


async def test_a_split_view_is_refused_by_whoever_saw_the_other(
    integrators: Integrators, witnesses: list[TheirWitness], stored: StoredLog, rival: Rival
) -> None:
    """Each witness is shown a tree of its own; with both as a quorum, no second view is published."""
    await grow(rival, integrators(witnesses[0].ours, quorum=1), prefix="one view")
    await stored.set_back()
    both = integrators(*(witness.ours for witness in witnesses[:2]), quorum=2)
    await grow(rival, both, prefix="another view")
    await both.finish_asking()
    assert await stored.state() == "witness_conflict"
    assert (await stored.published()).size == 2


async def test_what_another_worker_asks_about_is_missing_until_it_has_asked(
    ctx: Context, integrators: Integrators, witnesses: list[TheirWitness], rival: Rival, clock: FakeClock
) -> None:
    """The other may be killed: this one asks again in ten seconds, and not in thirty."""
    transparency = Transparency(ctx.transparency.origin, (witnesses[0].ours,), 1)
    await queue_entries(rival, 3)
    await integrators(witnesses[0].ours, quorum=1).integrate_once()
    asking = Witnesses(replace(ctx, transparency=transparency))
    await rival.run("UPDATE log_checkpoints SET asked_at = %s", clock.now())
    assert await asking.ask_about_newest()
    clock.advance(seconds=11)
    assert not await asking.ask_about_newest()
    assert witnesses[0].size(ctx.transparency.origin) == 5
