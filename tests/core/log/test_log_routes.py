"""`/v1/log`: what others read of the log, and verify."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.log.independent import tlog
from support.log.stored_log import StoredLog
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.log import entry as entries
from soundmark.core.domain.log.entry import digest, read_entry
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.crypto.signed_notes import COSIGNATURE, VerifierKey
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp

from .conftest import Integrators
from .test_integration import queue_entries

FOR_EVER = "public, max-age=31536000, immutable"


async def read(core: Api, path: str, **request: Any) -> Answer:
    return await core.get(f"/v1/log/{path}", **request)


async def read_tiles(core: Api, size: int) -> Any:
    """Return a reader of every tile and bundle of the log, as Core serves it."""
    paths, level = [], 0
    while size >> 8 * level:
        for number in range(-(-(size >> 8 * level) // 256)):
            width = min(256, (size >> 8 * level) - 256 * number)
            partial = None if width == 256 else width
            paths.append(tlog.tiles.tile_path(level, number, partial))
            if level == 0:
                paths.append(tlog.tiles.entry_bundle_path(number, partial))
        level += 1
    return tlog.MemoryTileReader({path: (await read(core, path)).body for path in paths})


async def test_others_audit_the_whole_log(core: Api, integrators: Integrators, stored: StoredLog, rival: Rival) -> None:
    await queue_entries(rival, 700)
    await integrators().integrate_once()
    checkpoint = await read(core, "checkpoint")
    assert (checkpoint.headers["content-type"], checkpoint.headers["cache-control"]) == (
        "text/plain; charset=utf-8",
        "no-store",
    )
    result = tlog.verify_checkpoint(
        tlog.parse_note(checkpoint.body), tlog.parse_vkey(stored.vkey), expected_origin=stored.origin
    )
    assert result.ok, result
    tree, _ = tlog.checkpoint.checkpoint_from_note(checkpoint.body)
    report = tlog.audit_tiles(await read_tiles(core, tree.size), tree.size, tree.root)
    assert (report.size, report.bundles) == (702, 3)


async def test_the_log_describes_itself(core: Api, stored: StoredLog) -> None:
    answer = await core.get("/v1/log")
    published = await stored.published()
    assert answer.json == {
        "origin": stored.origin,
        "vkeys": [stored.vkey],
        "size": published.size,
        "integrated_at": answer.json["integrated_at"],
        "state": "integrating",
        "stopped_reason": None,
        "witnesses": [],
    }
    assert answer.headers["cache-control"] == "no-store"


async def test_it_says_since_when_what_it_serves_is_integrated_and_who_witnesses_it(
    ctx: Context, integrators: Integrators, rival: Rival, clock: FakeClock, database_url: Secret, tmp_path: Path
) -> None:
    witnesses = [VerifierKey(f"witness-{number}.example", COSIGNATURE, bytes([number]) * 32) for number in (1, 2)]
    file = tmp_path / "witnesses"
    file.write_text("".join(f"{key} https://{key.name}\n" for key in witnesses))
    async with running_core(core_settings(database_url, transparency_witnesses=str(file)), clock) as api:
        integrated_at = clock.freeze()
        await queue_entries(rival, 1)
        await integrators().integrate_once()
        clock.advance(minutes=5)
        await queue_entries(rival, 1, "not published")
        await integrators(quorum=1).integrate_once()
        view = (await api.get("/v1/log")).json
        assert view["witnesses"] == [{"name": key.name, "vkey": str(key)} for key in witnesses]
        assert (view["size"], view["integrated_at"]) == (3, format_timestamp(integrated_at))
        assert ctx.clock.now() > integrated_at


async def test_a_stopped_log_says_why_and_is_still_served(core: Api, rival: Rival) -> None:
    for reason in ("witness_conflict", "tree_damaged", "restored"):
        await rival.run("UPDATE log_state SET stopped_reason = %s", reason)
        view = (await core.get("/v1/log")).json
        assert (view["state"], view["stopped_reason"]) == ("stopped", reason)
    assert (await read(core, "checkpoint")).status == 200
    assert (await core.get("/readyz")).status == 200


async def test_every_part_of_a_published_tile_is_served_for_ever_and_no_more(
    core: Api, integrators: Integrators, rival: Rival, stored: StoredLog, subtests: pytest.Subtests
) -> None:
    """Checkpoints of every size may be out there; a part stays when the tile is full."""
    await queue_entries(rival, 300)
    await integrators().integrate_once()
    whole = {"0/000": (256, "0/000"), "0/001": (46, "0/001.p/46"), "1/000": (1, "1/000.p/1")}
    for path, (width, newest) in whole.items():
        answer = await read(core, f"tile/{newest}")
        assert (answer.status, answer.headers["cache-control"]) == (200, FOR_EVER)
        assert answer.headers["content-type"] == "application/octet-stream"
        for part in {1, width // 2 or 1, min(width, 255)}:
            assert (await read(core, f"tile/{path}.p/{part}")).body == answer.body[: 32 * part]
        if width < 256:
            for more in (f"{path}.p/{width + 1}", path):
                assert (await read(core, f"tile/{more}")).code == "not_found"
    bundle = tlog.tiles.parse_entry_bundle((await read(core, "tile/entries/000")).body)
    assert bundle == (await stored.entries())[:256]
    part = await read(core, "tile/entries/000.p/3")
    assert tlog.tiles.parse_entry_bundle(part.body) == bundle[:3]
    wrong = ["0/002", "0/002.p/1", "1/000", "1/001.p/1", "2/000.p/1", "63/000.p/1", "64/000", "0/x000/000", "00/000"]
    for path in [*wrong, "entries/001", "entries/002.p/1", "0/0", "0/", "entries/", "0/x999/x999/x999/x999/x999/999"]:
        with subtests.test(path):
            answer = await read(core, f"tile/{path}")
            assert (answer.status, answer.code, answer.headers["cache-control"]) == (404, "not_found", "no-store")


async def test_a_bundle_is_compressed_for_whoever_accepts_it(core: Api) -> None:
    plain = await read(core, "tile/entries/000.p/2", headers={"Accept-Encoding": "identity"})
    for accepted in ("gzip", "br, GZIP;q=0.5"):
        raw = await read(core, "tile/entries/000.p/2", headers={"Accept-Encoding": accepted})
        assert raw.headers["content-encoding"] == "gzip"
        assert raw.headers["cache-control"] == FOR_EVER
        assert plain.body in {raw.body, gzip.decompress(raw.body) if raw.body[:2] == b"\x1f\x8b" else raw.body}
    for refused in ("br", "gzip;q=0", "gzip; q=0.000"):
        answer = await read(core, "tile/entries/000.p/2", headers={"Accept-Encoding": refused})
        assert "content-encoding" not in answer.headers
        assert answer.headers["vary"] == "accept-encoding"


async def test_what_is_not_published_is_not_shown(
    core: Api, integrators: Integrators, rival: Rival, stored: StoredLog
) -> None:
    """It waits for a quorum of witnesses."""
    (waiting,) = await queue_entries(rival, 1)
    await integrators(quorum=1).integrate_once()
    assert (await stored.newest()).size == 3
    assert (await core.get("/v1/log")).json["size"] == 2
    for path in ("0/000.p/3", "entries/000.p/3"):
        assert (await read(core, f"tile/{path}")).code == "not_found"
    proof = await read(core, f"proofs/{base64url.encode(read_entry(waiting).digests[0])}")
    assert proof.code == "log_entry_not_found"


async def test_each_commitment_has_a_proof_that_others_verify(
    core: Api, tenant: Tenant, integrators: Integrators, stored: StoredLog, rival: Rival
) -> None:
    await queue_entries(rival, 300)
    code = await tenant.make_code()
    await tenant.revoke(code["xr_id"])
    await integrators().integrate_once()
    signed = code["signed_code"]
    answer = {name: signed[name] for name in ("xr_id", "token_digest", "intent", "policy")}
    key = (await core.get("/v1/keys")).json["keys"][0]
    named = {"kid": key["kid"], "x": key["x"]}
    committed = {
        ("code.issued", "code"): signed,
        ("code.issued", "answer"): answer,
        ("code.revoked", "code"): signed,
        ("key.published", "key"): named,
        ("key.activated", "key"): named,
    }
    for (kind, member), value in committed.items():
        text = base64url.encode(digest(kind, member, canonicalize(value)))
        proof = await read(core, f"proofs/{text}")
        assert (proof.headers["content-type"], proof.headers["cache-control"]) == (
            "text/plain; charset=utf-8",
            "no-store",
        )
        assert proof.headers["ratelimit"].startswith('"log-proofs";r=')
        verify_as_others(proof.body.decode(), kind, member, text, stored)


def verify_as_others(proof: str, kind: str, member: str, digest_text: str, stored: StoredLog) -> None:
    """Verify a proof line by line, as C2SP's tlog-proof describes it."""
    head, _, checkpoint = proof.partition("\n\n")
    header, extra, index, *hashes = head.split("\n")
    assert header == "c2sp.org/tlog-proof@v1"
    leaf = tlog.note.b64_decode(extra.removeprefix("extra "))
    assert f'"{member}":"{digest_text}"' in leaf.decode()
    assert f'"kind":"{kind}"' in leaf.decode()
    note = tlog.parse_note(checkpoint)
    assert tlog.verify_checkpoint(note, tlog.parse_vkey(stored.vkey)).ok
    tree = tlog.parse_checkpoint(note.text)
    path = [tlog.note.b64_decode(line) for line in hashes]
    assert tlog.verify_leaf_inclusion(leaf, int(index.removeprefix("index ")), tree.size, path, tree.root)


async def test_what_is_no_commitment_of_the_log_has_no_proof(core: Api, subtests: pytest.Subtests) -> None:
    unknown = base64url.encode(bytes(32))
    for text in (unknown, unknown[:-1], unknown + "A", unknown[:-1] + "B", unknown + "=", "x", "é" * 43):
        with subtests.test(text):
            answer = await read(core, f"proofs/{text}")
            assert (answer.status, answer.code) == (404, "log_entry_not_found")


async def test_proofs_are_limited_as_resolutions_are_with_a_counter_of_their_own(
    database_url: Secret, clock: FakeClock
) -> None:
    settings = core_settings(database_url, resolve_rate_limit="2", resolve_rate_window_s="10")
    async with running_core(settings, clock) as api:
        for _ in range(2):
            await api.resolve("brd_unknown-unknown")
        path = f"/v1/log/proofs/{base64url.encode(bytes(32))}"
        answers = [await api.get(path) for _ in range(3)]
        assert [answer.code for answer in answers] == ["log_entry_not_found", "log_entry_not_found", "rate_limited"]
        assert [answer.headers["ratelimit"][-8:] for answer in answers] == ["r=1;t=10", "r=0;t=10", "r=0;t=10"]
        assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"log-proofs";q=2;w=10'}
        assert answers[-1].headers["retry-after"] == "10"
        assert (await api.get("/v1/log/checkpoint")).status == 200


async def test_a_wrong_credential_is_not_read_and_any_page_may(core: Api) -> None:
    headers = {"Authorization": "Bearer wrong", "Origin": "https://elsewhere.example"}
    for path in ("", "/checkpoint", "/tile/0/000.p/1", "/tile/entries/000.p/1"):
        answer = await core.get(f"/v1/log{path}", headers=headers)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "*")


def test_the_example_entries_of_every_kind_are_read() -> None:
    assert read_entry(entries.audit_head_entry("org_x", 1, "A" * 43)).kind == "audit.head"
