"""How the log grows: everything that waits enters the tree once, in one sequence, signed, and whole after a crash."""

import asyncio
import gzip
import json
from collections import Counter
from unittest.mock import AsyncMock

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.log.stored_log import StoredLog
from support.tenancy.closures import organization_of, project_of
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.context import Context
from soundmark.core.domain.log.entry import document_entry, read_entry
from soundmark.core.features.log.integration import opening, sequencing
from soundmark.core.features.log.integration.opening import open_log, renew_log
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.text import base64url

from .conftest import Integrators
from .test_log_queue import entry_of


async def queue_entries(rival: Rival, count: int, prefix: str = "") -> list[bytes]:
    """Queue entries of documents that do not exist."""
    entries = [document_entry(f'"{prefix}{number}"'.encode()) for number in range(count)]
    await rival.run("INSERT INTO log_queue (content) SELECT unnest(%s::bytea[])", entries)
    return entries


async def kinds(stored: StoredLog) -> Counter[str]:
    return Counter(json.loads(entry)["kind"] for entry in await stored.entries())


async def test_a_new_log_begins_with_the_keys_and_is_published(stored: StoredLog) -> None:
    assert await kinds(stored) == Counter(["key.published", "key.activated"])
    assert (await stored.published()).size == 2
    assert stored.origin == "core.test/v1/log"


async def test_what_waits_enters_the_tree_once_and_is_published(
    integrators: Integrators, stored: StoredLog, rival: Rival
) -> None:
    integrator = integrators()
    entries = await queue_entries(rival, 600)
    assert await integrator.integrate_once() == 600
    assert Counter((await stored.entries())[2:]) == Counter(entries)
    assert (await stored.published()).size == await stored.audit() == 602
    assert await rival.rows("SELECT 1 FROM log_queue") == []
    assert await integrator.integrate_once() == 0, "without anything new, nothing is signed"
    assert await rival.rows("SELECT size FROM log_checkpoints") == [(602,)]


async def test_entries_that_are_integrated_together_are_in_random_order(
    integrators: Integrators, stored: StoredLog, rival: Rival
) -> None:
    """Neighbours would tell which acts belong together."""
    entries = await queue_entries(rival, 50)
    await integrators().integrate_once()
    assert (await stored.entries())[2:] != entries


async def test_an_entry_that_is_queued_again_has_one_leaf(
    integrators: Integrators, stored: StoredLog, rival: Rival
) -> None:
    integrator = integrators()
    for _ in range(2):
        await queue_entries(rival, 3)
        await queue_entries(rival, 3)
        await integrator.integrate_once()
    assert await stored.audit() == 5


async def test_what_is_no_entry_is_dropped(integrators: Integrators, stored: StoredLog, rival: Rival) -> None:
    """Somebody who can write to the queue could otherwise break every monitor."""
    await rival.run("INSERT INTO log_queue (content) VALUES ('{}'), ('{\"v\":1}')")
    cut_off = "INSERT INTO log_queue (kind, count, content) VALUES (%s, 2, %s)"
    for number, (kind, size) in enumerate((("code.issued", 64), ("code.revoked", 32))):
        await rival.run(cut_off, kind, bytes([number]) * (2 * size - 1))
    assert await integrators().integrate_once() == 2, "of each row that was cut off, what is whole"
    assert await stored.audit() == 4


async def test_workers_take_turns(
    integrators: Integrators, stored: StoredLog, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequencing, "ENTRIES_AT_ONCE", 16)
    entries = await queue_entries(rival, 300)
    counts = await asyncio.gather(*(integrators().integrate_once() for _ in range(3)))
    assert sum(counts) == 300
    assert Counter((await stored.entries())[2:]) == Counter(entries)
    assert await stored.audit() == 302


async def test_what_waits_in_one_row_is_taken_whole_and_more_in_the_next_step(
    ctx: Context, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While Codes are issued all the time, a worker does not go on for ever: it pauses once a step was not full."""
    monkeypatch.setattr(sequencing, "ENTRIES_AT_ONCE", 4)
    for count in (7, 3, 2, 1):
        content = b"".join(bytes([count, number]) * 32 for number in range(count))
        await rival.run("INSERT INTO log_queue (kind, count, content) VALUES ('code.issued', %s, %s)", count, content)
    steps = [await sequencing.integrate_some(ctx) for _ in range(4)]
    found = [(step.added_count, step.has_more) for step in steps if step.added_count]
    assert found == [(7, True), (5, True), (1, False)]


async def test_codes_that_were_active_before_the_log_are_entered_and_no_others(
    ctx: Context, tenant: Tenant, integrators: Integrators, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take several steps, during which more are issued."""
    monkeypatch.setattr(sequencing, "ENTRIES_AT_ONCE", 2)
    codes = [await tenant.make_code() for _ in range(5)]
    await tenant.make_code(lifetime_s=1)
    await tenant.revoke(codes[0]["xr_id"])
    await rival.run("DELETE FROM log_queue")
    ctx.clock.advance(seconds=2)  # type: ignore[attr-defined]  # The clock of tests.
    await renew_log(ctx, "renewed.example/v1/log")
    await tenant.make_code()
    await integrators().integrate_once()
    stored = await StoredLog.read(rival)
    assert stored.origin == "renewed.example/v1/log"
    assert await kinds(stored) == Counter(["key.published", "key.activated", *["code.issued"] * 5])
    assert (await stored.published()).size == await stored.audit()


async def test_codes_that_end_before_their_turn_are_entered_too(
    ctx: Context, tenant: Tenant, integrators: Integrators, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were active when the log was made: their owner finds them in it, once, and a revocation after it."""
    codes = [await tenant.make_code() for _ in range(3)]
    codes.append(await tenant.make_code(lifetime_s=60))
    await rival.run("DELETE FROM log_queue")
    with monkeypatch.context() as patch:
        # It is made, and the process dies before the first step.
        patch.setattr(opening, "integrate_some", AsyncMock())
        await renew_log(ctx, "renewed.example/v1/log")
    ctx.clock.advance(seconds=61)  # type: ignore[attr-defined]  # The clock of tests.
    await tenant.revoke(codes[0]["xr_id"])
    await integrators().integrate_once()
    stored = await StoredLog.read(rival)
    entries = Counter(await stored.entries())
    assert {entries[entry_of(code)] for code in codes} == {1}
    assert entries[entry_of(codes[0], revoked=True)] == 1
    assert entries.total() == 2 + 4 + 1


async def test_each_deletion_certificate_from_before_the_log_is_entered(
    core: Api, ctx: Context, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_CERTIFICATES_AT_ONCE", 2)
    tenants = [await make_tenant(core) for _ in range(2)]
    deleted = [subject_of(tenant) for subject_of in (project_of, organization_of) for tenant in tenants]
    certificates = [await subject.certificate() for subject in deleted]
    await rival.run("DELETE FROM log_queue")
    await renew_log(ctx, "renewed.example/v1/log")
    stored = await StoredLog.read(rival)
    entered = Counter(entry for entry in await stored.entries() if read_entry(entry).kind == "document.sealed")
    assert entered == Counter(document_entry(canonicalize(certificate)) for certificate in certificates)
    assert await stored.audit() == 2 + 4


async def test_what_a_deleted_organisation_logged_stays_and_says_nothing_of_it(
    core: Api, integrators: Integrators, stored: StoredLog
) -> None:
    tenant = await make_tenant(core)
    code, waiting = await tenant.make_code(), await tenant.make_code()
    await integrators().integrate_once()
    path = f"/v1/log/proofs/{base64url.encode(read_entry(entry_of(code)).digests[0])}"
    before = await stored.entries()
    proof = await core.get(path)
    assert proof.status == 200
    certificate = await organization_of(tenant).certificate()
    await integrators().integrate_once()
    entries = await stored.entries()
    assert entries[: len(before)] == before, "no leaf was altered or moved"
    assert entries[len(before) :] == [document_entry(canonicalize(certificate))]
    assert entry_of(waiting) in before
    assert (await core.get(path)).body.decode().split("\n")[:2] == proof.body.decode().split("\n")[:2]
    assert await stored.audit() == len(entries)
    served = gunzipped(await core.get(f"/v1/log/tile/entries/000.p/{len(entries)}"))
    assert all(entry in served for entry in entries)
    for part in (tenant.organization_id, tenant.project_id, code["xr_id"], code["broadcast_token"], code["issuer"]):
        assert part.encode() not in served
    for found in (certificate["certificate_id"], certificate["subject"]["id"]):
        assert found.encode() not in served


def gunzipped(answer: Answer) -> bytes:
    assert answer.status == 200, answer.body
    return gzip.decompress(answer.body) if answer.body[:2] == b"\x1f\x8b" else answer.body


async def test_opening_a_log_again_changes_nothing(ctx: Context, stored: StoredLog) -> None:
    before = await stored.newest()
    await asyncio.gather(*(open_log(ctx) for _ in range(3)))
    assert await stored.newest() == before


async def test_a_failure_within_an_integration_leaves_everything_as_before(
    integrators: Integrators, stored: StoredLog, rival: Rival
) -> None:
    entries = await queue_entries(rival, 3)
    for table in ("log_leaves", "log_tiles", "log_checkpoints"):
        async with rival.refusing(table):
            with pytest.raises(Exception, match="refusing"):
                await integrators().integrate_once()
        assert await stored.audit() == 2
        assert len(await rival.rows("SELECT content FROM log_queue")) == len(entries)
    assert await integrators().integrate_once() == 3


async def test_a_log_whose_stored_tree_was_altered_stops_and_signs_nothing(
    ctx: Context, integrators: Integrators, rival: Rival, subtests: pytest.Subtests
) -> None:
    alterations = {
        "tile": "UPDATE log_tiles SET hashes = sha256('x') || substring(hashes FROM 33)",
        "tile is gone": "DELETE FROM log_tiles",
        "size": "UPDATE log_state SET size = 1",
        "root": "UPDATE log_checkpoints SET note = replace(note, substring(note FROM 20 FOR 10), 'AAAAAAAAAA')",
        "checkpoint is gone": "DELETE FROM log_checkpoints",
        "keys": "UPDATE log_keys SET public_key = sha256('x')",
    }
    for name, statement in alterations.items():
        with subtests.test(name):
            await renew_log(ctx, f"{name.replace(' ', '-')}.example/v1/log")
            stored = await StoredLog.read(rival)
            signed = await rival.rows("SELECT note FROM log_checkpoints")
            await rival.run(statement)
            await queue_entries(rival, 1, name)
            assert await integrators().integrate_once() == 0
            assert await stored.state() == "tree_damaged"
            await rival.run("DELETE FROM log_checkpoints WHERE note = %s", signed[0][0])
            assert len(await rival.rows("SELECT note FROM log_checkpoints")) <= (name == "root")
            assert len(await rival.rows("SELECT content FROM log_queue")) == 1
            await rival.run("DELETE FROM log_queue")
