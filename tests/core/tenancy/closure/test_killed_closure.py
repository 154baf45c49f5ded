"""Processes that are killed after each phase of a closure; a repetition, or the worker, completes it truly.

A process is killed while the first statement of the next phase waits for a lock of the test's own.
"""

import contextlib
import re
from typing import Any, Final

import httpx2
import pytest
from support.database.rival import COMMITTING, Rival
from support.processes.killable import OPERATOR, Doomed, Killable, running_audience, until_alone
from support.tenancy.closures import Subject, fill, organization_of, verify_certificate
from support.tenancy.tenant import Tenant

from soundmark.audience.features.purges import service as purges
from soundmark.core.features.tenancy.closure import service as closures
from soundmark.kit.crypto.secret import Secret

# The statement whose lock keeps a process from going on after a phase, and the phase that is noted then.
AFTER_PHASE_OF_CORE = {
    # Phases 1 and 2 are one transaction, and 3 is Audience's.
    "1": ("audience", "LOCK TABLE purges IN EXCLUSIVE MODE", "requested"),
    "2": ("audience", "LOCK TABLE purges IN EXCLUSIVE MODE", "requested"),
    # The note that Audience has purged, and the gates behind it, wait for the closure's row: see `kill_after_purge`.
    "3": ("closure", "SELECT FROM closures FOR UPDATE", "requested"),
    "4": ("core", "SELECT FROM codes FOR UPDATE", "deleting"),
    "5": ("core", "SELECT FROM campaigns FOR UPDATE", "deleting"),
    # Nothing waits behind the last phase but its commit: see `Rival.pausing_commits`.
    "6": ("nothing", "", None),
}
AFTER_PHASE_OF_AUDIENCE = {
    "1": "SELECT FROM event_months FOR UPDATE",
    "2": "SELECT FROM events FOR UPDATE",
    "3": "SELECT FROM operations FOR UPDATE",
    "4": None,
}
CERTIFICATES: Final = "SELECT 1 FROM deletion_certificates"


def phases_of(module: Any) -> list[str]:
    """Return the numbers of the phases that the docstring of a saga lists."""
    return re.findall(r"^(\d)\. ", module.__doc__, re.MULTILINE)


def test_every_phase_has_a_case() -> None:
    assert phases_of(closures) == sorted(AFTER_PHASE_OF_CORE)
    assert phases_of(purges) == sorted(AFTER_PHASE_OF_AUDIENCE)


def delete(core: Doomed, subject: Subject) -> None:
    """Request a deletion, whose answer must be lost."""
    core.lose("DELETE", subject.path, json={"confirmation": subject.id})


async def require_true_certificate(subject: Subject, rival: Rival, measuring: Rival) -> None:
    """Repeat the deletion, which completes it once; every row is counted once, and none is left."""
    certificate_id = (await subject.preflight()).json["certificate_id"]
    certificate = await subject.certificate()
    assert certificate["certificate_id"] == certificate_id
    await require_counts(certificate, rival, measuring)


async def require_counts(certificate: dict[str, Any], rival: Rival, measuring: Rival) -> None:
    core, audience = certificate["deleted"]["core"], certificate["deleted"]["audience"]
    assert (core["codes"], core["campaigns"], core["api_keys"], core["projects"]) == (2, 1, 1, 1)
    assert (core["decode_certificates"], core["offline_packs"]) == (1, 1)
    assert (audience["integrations"], audience["events"], audience["spent_proofs"]) == (1, 1, 1)
    assert await rival.rows("SELECT count(*) FROM organizations") == [(0,)]
    assert await rival.rows("SELECT count(*) FROM broadcasts") == [(0,)]
    assert await measuring.rows("SELECT count(*) FROM events") == [(0,)]
    assert await rival.rows("SELECT count(*) FROM deletion_certificates") == [(1,)]


@pytest.mark.parametrize("phase", [phase for phase, (where, _, _) in AFTER_PHASE_OF_CORE.items() if where != "nothing"])
async def test_a_core_that_is_killed_after_a_phase(
    tenant: Tenant, rival: Rival, measuring: Rival, killable: Killable, phase: str
) -> None:
    await fill(tenant)
    subject = organization_of(tenant)
    where, lock, noted = AFTER_PHASE_OF_CORE[phase]
    async with killable.core() as core:
        if where == "closure":
            await kill_after_purge(core, subject, rival, measuring)
        else:
            async with core.dying_while(measuring if where == "audience" else rival, lock):
                delete(core, subject)
    await until_alone(rival)

    assert await rival.rows("SELECT phase FROM closures") == [(noted,)]
    await require_true_certificate(subject, rival, measuring)


async def kill_after_purge(core: Doomed, subject: Subject, rival: Rival, measuring: Rival) -> None:
    async with contextlib.AsyncExitStack() as dying, measuring.holding("LOCK TABLE purges IN EXCLUSIVE MODE"):
        delete(core, subject)
        await measuring.until_someone_waits()
        # The note waits here, when Audience has answered.
        await dying.enter_async_context(core.dying_while(rival, "SELECT FROM closures FOR UPDATE"))
    assert await measuring.rows("SELECT completed_at IS NOT NULL FROM purges") == [(True,)]


async def test_a_core_that_is_killed_after_the_last_phase(
    tenant: Tenant, rival: Rival, measuring: Rival, killable: Killable
) -> None:
    """Only its answer is lost: the repetition finds nothing, and the certificate is where the preflight said."""
    await fill(tenant)
    subject = organization_of(tenant)
    certificate_id = (await subject.preflight()).json["certificate_id"]
    pausing = rival.pausing_commits("INSERT ON deletion_certificates")
    async with killable.core() as core, pausing, core.dying_while(rival, COMMITTING):
        delete(core, subject)

    repeated = await subject.delete()
    assert (repeated.status, repeated.code) == (404, "organization_not_found")
    certificate = (await tenant.api.get(f"/v1/deletion-certificates/{certificate_id}")).json
    await verify_certificate(tenant.api, certificate)
    await require_counts(certificate, rival, measuring)


@pytest.mark.parametrize("phase", [phase for phase, lock in AFTER_PHASE_OF_AUDIENCE.items() if lock is not None])
async def test_an_audience_that_is_killed_after_a_phase(
    tenant: Tenant, rival: Rival, measuring: Rival, killable: Killable, beside_core_url: Secret, phase: str
) -> None:
    await fill(tenant)
    lock = AFTER_PHASE_OF_AUDIENCE[phase]
    assert lock is not None, "phases behind which something waits"
    with running_audience(beside_core_url) as (audience_url, audience):
        async with killable.core(audience_url=audience_url) as core, measuring.holding(lock):
            deleting = await measuring.while_waiting(delete_in_vain(core.url, organization_of(tenant)))
            audience.kill()
            assert await deleting == "audience_unavailable"
    await until_alone(measuring)

    await require_true_certificate(organization_of(tenant), rival, measuring)


async def test_an_audience_that_is_killed_after_the_last_phase(
    tenant: Tenant, rival: Rival, measuring: Rival, killable: Killable, beside_core_url: Secret
) -> None:
    """The purge is complete, and Core never learns it: the repetition gets the same counts from another process."""
    await fill(tenant)
    subject = organization_of(tenant)
    with running_audience(beside_core_url) as (audience_url, audience):
        async with killable.core(audience_url=audience_url) as core:
            await kill_after_purge(core, subject, rival, measuring)
        audience.kill()

    await require_true_certificate(organization_of(tenant), rival, measuring)


async def delete_in_vain(url: str, subject: Subject) -> str | None:
    """Delete an organisation through this Core; return the code of the problem."""
    async with httpx2.AsyncClient(base_url=url, headers=OPERATOR, timeout=60) as client:
        answer = await client.request("DELETE", subject.path, json={"confirmation": subject.id})
        return None if answer.status_code == 204 else answer.json()["code"]


RESUMING = (
    "INSERT INTO procrastinate_jobs (queue_name, task_name, args)"
    " VALUES ('default', 'resume_closures', '{\"timestamp\": 0}')"
)


@pytest.mark.parametrize("lock", ["SELECT FROM codes FOR UPDATE", "SELECT FROM campaigns FOR UPDATE"])
async def test_a_worker_that_is_killed_while_it_deletes(
    tenant: Tenant, rival: Rival, measuring: Rival, killable: Killable, lock: str
) -> None:
    """After the gates it may be killed in either phase; the next worker completes the closure."""
    await fill(tenant)
    subject = organization_of(tenant)
    certificate_id = (await subject.preflight()).json["certificate_id"]
    async with rival.holding(lock):
        deleting = await rival.while_waiting(subject.delete())
        await rival.kill_waiting_sessions()
        assert (await deleting).code == "database_unavailable"
        # The worker's clock is the machine's.
        await rival.run("UPDATE closures SET worked_at = '2020-01-01'")
        async with killable.worker() as worker:
            await rival.run(RESUMING)
            await rival.until_someone_waits()
            worker.kill()
    await until_alone(rival)
    await rival.run("DELETE FROM procrastinate_jobs")
    await rival.run("UPDATE closures SET worked_at = '2020-01-01'")

    async with killable.worker():
        await rival.run(RESUMING)
        await rival.until_found(CERTIFICATES)

    certificate = await tenant.api.get(f"/v1/deletion-certificates/{certificate_id}")
    await require_counts(certificate.json, rival, measuring)
