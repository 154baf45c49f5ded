"""A log whose database was restored goes on once every witness has cosigned it, and not before."""

from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from support.database.rival import Rival
from support.log.stored_log import StoredLog
from support.log.witnesses import TheirWitness
from support.processes.fake_clock import FakeClock

from .conftest import Integrators
from .test_integration import queue_entries


def metric(name: str) -> float | None:
    return REGISTRY.get_sample_value(f"soundmark_log_{name}")


async def restore(rival: Rival) -> None:
    await rival.run("UPDATE log_state SET stopped_reason = 'restored'")


async def test_every_witness_must_confirm_the_restored_tree(
    integrators: Integrators, witnesses: list[TheirWitness], stored: StoredLog, rival: Rival
) -> None:
    both = [witness.ours for witness in witnesses[:2]]
    integrator = integrators(*both, quorum=2)
    await queue_entries(rival, 3)
    await integrator.integrate_once()
    await integrator.ask_once()
    await restore(rival)
    witnesses[1].answer = (500, b"")
    await integrator.watch_once()
    assert await stored.state() == "restored"
    witnesses[1].answer = None
    await integrator.watch_once()
    assert await stored.state() is None


async def test_a_witness_that_has_seen_more_stops_it_for_good(
    integrators: Integrators, witnesses: list[TheirWitness], stored: StoredLog, rival: Rival
) -> None:
    integrator = integrators(witnesses[0].ours, quorum=1)
    await queue_entries(rival, 3)
    await integrator.integrate_once()
    await integrator.ask_once()
    await stored.set_back()
    await restore(rival)
    await integrators(witnesses[0].ours, quorum=1).watch_once()
    assert await stored.state() == "witness_conflict"


async def test_without_witnesses_nobody_confirms_it(integrators: Integrators, stored: StoredLog, rival: Rival) -> None:
    await restore(rival)
    await integrators().watch_once()
    assert await stored.state() == "restored"


async def test_a_stopped_log_is_reported_once_a_minute_and_in_the_metrics(
    integrators: Integrators, rival: Rival, clock: FakeClock, subtests: pytest.Subtests
) -> None:
    integrator = integrators()
    await queue_entries(rival, 2)
    await integrator.watch_once()
    assert (metric("stopped"), metric("waiting_entries")) == (0, 2)
    for reason in ("witness_conflict", "tree_damaged", "restored"):
        with subtests.test(reason):
            await rival.run("UPDATE log_state SET stopped_reason = %s", reason)
            clock.advance(seconds=60)
            lines = [await watch(integrator) for _ in range(2)]
            assert lines == [[{"reason": reason, "waiting": 2}], []]
            assert (metric("stopped"), metric("waiting_entries")) == (1, 2)


async def watch(integrator: Any) -> list[dict[str, Any]]:
    """Return what one look reports of a stopped log."""
    with capture_logs() as logs:
        await integrator.watch_once()
    return [{name: line[name] for name in ("reason", "waiting")} for line in logs if line["event"] == "log_stopped"]
