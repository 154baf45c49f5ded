"""`soundmark log`: an auditor, an organisation, a witness and an operator, each with the real command."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from support.api.core_settings import MASTER_KEY
from support.processes.command_server import running_command, share_command_server
from support.processes.up_process import until

from soundmark.cli import Refused
from soundmark.cli.log_source import LogSource
from soundmark.core.context import Context
from soundmark.core.domain.log.entry import document_entry
from soundmark.core.domain.log.state import Witness
from soundmark.core.features.log.integration.opening import renew_log
from soundmark.kit.crypto.signed_notes import COSIGNATURE, parse_verifier_key

from .conftest import Done, Service, environ, integrate, run

ALTER_TILE: Final = (
    "UPDATE log_tiles SET hashes = overlay(hashes PLACING sha256('x') FROM {} FOR 32) WHERE (level, number) = ({}, {})"
)
# Turns 16 characters of the last one around.
ALTER_COSIGNATURE: Final = (
    "UPDATE log_checkpoints SET cosignatures = left(cosignatures, -20) || reverse(left(right(cosignatures, 20), 16))"
    " || right(cosignatures, 4)"
)


def queue_documents(service: Service, count: int, prefix: str = "") -> None:
    for number in range(count):
        service.run_sql("INSERT INTO log_queue (content) VALUES (%s)", document_entry(f'"{prefix}{number}"'.encode()))


def verify(service: Service, *arguments: str) -> Done:
    return run("log", "verify", "--base-url", service.url, *arguments)


def vkey_of(service: Service) -> str:
    return str(service.client.get("/v1/log").json()["vkeys"][0])


def on_database(service: Service, *arguments: str) -> Done:
    settings = {"CORE_DATABASE_URL": service.database_url.reveal(), "MASTER_KEY": MASTER_KEY}
    return run("log", *arguments, settings=settings)


def log_source(answer: Callable[[httpx2.Request], httpx2.Response]) -> LogSource:
    return LogSource("https://core.test", httpx2.Client(transport=httpx2.MockTransport(answer)))


async def test_an_auditor_verifies_the_whole_log_and_that_it_only_grows(
    service: Service, ctx: Context, tmp_path: Path
) -> None:
    state = str(tmp_path / "log.json")
    first = verify(service, "--state", state)
    assert (first.status, first.out) == (0, "core.test/v1/log: whole and consistent, 2 entries\n")
    assert vkey_of(service) in first.err, "that the key is the log's own claim is said once"
    queue_documents(service, 300)
    await integrate(ctx)
    again = verify(service, "--state", state, "--json")
    assert (again.status, again.err) == (0, "")
    assert json.loads(again.out)["size"] == 302
    assert verify(service, "--vkey", vkey_of(service)).err == ""


async def test_whatever_was_altered_is_named(
    service: Service, ctx: Context, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    queue_documents(service, 300)
    await integrate(ctx)
    state = tmp_path / "log.json"
    assert verify(service, "--state", str(state)).status == 0
    kept = json.loads(state.read_text())
    entry = document_entry(b'"another"')
    alterations = {
        "hash 1 of tile 1 of level 0": ALTER_TILE.format(33, 0, 1),
        "hash 0 of tile 0 of level 1": ALTER_TILE.format(1, 1, 0),
        "entry 7 has no known form": "UPDATE log_leaves SET entry = '{}' WHERE position = 7",
        "the first 302 entries": f"UPDATE log_leaves SET entry = '{entry.decode()}' WHERE position = 301",
        "entry 9 repeats an earlier one": (
            "UPDATE log_leaves SET entry = (SELECT entry FROM log_leaves WHERE position = 8) WHERE position = 9"
        ),
        "bundle 1 has 45 entries": "DELETE FROM log_leaves WHERE position = 301",
        "the checkpoint is not signed": "UPDATE log_checkpoints SET note = replace(note, E'\\n302\\n', E'\\n301\\n')",
    }
    for fault, statement in alterations.items():
        with subtests.test(fault):
            service.run_sql("CREATE TABLE kept AS SELECT * FROM log_leaves")
            service.run_sql("CREATE TABLE kept_tiles AS SELECT * FROM log_tiles")
            service.run_sql("CREATE TABLE kept_checkpoints AS SELECT * FROM log_checkpoints")
            try:
                service.run_sql(statement)
                assert fault in verify(service, "--state", str(state)).refusal
                assert json.loads(state.read_text()) == kept, "the last good checkpoint stays"
            finally:
                for name, copy in (
                    ("log_leaves", "kept"),
                    ("log_tiles", "kept_tiles"),
                    ("log_checkpoints", "kept_checkpoints"),
                ):
                    service.run_sql(f"DELETE FROM {name}")
                    service.run_sql(f"INSERT INTO {name} SELECT * FROM {copy}")
                    service.run_sql(f"DROP TABLE {copy}")
    assert verify(service, "--state", str(state)).status == 0


async def test_a_log_that_is_not_the_one_before_is_refused(service: Service, ctx: Context, tmp_path: Path) -> None:
    state = str(tmp_path / "log.json")
    queue_documents(service, 3)
    await integrate(ctx)
    assert verify(service, "--state", state).status == 0
    await renew_log(ctx, "core.test/v1/log")
    assert "not signed by a key of the log" in verify(service, "--state", state).refusal
    assert "has 2 entries, and had 5" in verify(service, "--state", state, "--vkey", vkey_of(service)).refusal
    await renew_log(ctx, "other.test/v1/log")
    assert "the log is other.test" in verify(service, "--state", state, "--vkey", vkey_of(service)).refusal


def test_wrong_options_are_refused(service: Service, tmp_path: Path) -> None:
    wrong = {
        "quorum of 1": verify(service, "--quorum", "1"),
        "x is not a vkey": verify(service, "--vkey", "x"),
        "y is not a vkey": verify(service, "--witness", "y"),
        "z is not a vkey": run("log", "witness", "--state", str(tmp_path / "witness"), "--name", "w", "--log", "z"),
    }
    for fault, done in wrong.items():
        assert (done.status, fault in " ".join(done.err.split())) == (2, True), done
    assert "up.json" in run("log", "verify", "--data-dir", str(tmp_path)).refusal
    broken = tmp_path / "broken.json"
    for content in ("[]", "[" * 100_000):
        broken.write_text(content)
        assert "is not what" in verify(service, "--state", str(broken)).refusal
    assert run("log", "verify", "--base-url", "http://127.0.0.1:9").refusal == (
        "Nothing answers at http://127.0.0.1:9 (connection refused). Start it, or name another with --base-url."
    )
    assert run("log", "verify", "--base-url", "ftp://core.test").refusal == (
        "ftp://core.test: The base URL must begin with https:// and name a host."
    )


def test_an_endless_answer_of_a_log_is_not_kept() -> None:
    sent = 0

    def send_without_end() -> Iterator[bytes]:
        nonlocal sent
        while True:
            sent += 2**20
            yield bytes(2**20)

    source = log_source(lambda _: httpx2.Response(200, content=send_without_end()))
    with pytest.raises(Refused, match=r"^https://core\.test/v1/log/proofs/00 sends more than 32 MiB$"):
        source.read_proof("00")
    assert sent == 33 * 2**20


def test_however_a_log_says_when_to_ask_again_an_auditor_waits_a_second_to_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stated = ["nan", "inf", "-5", "0", "7", "999999", "Thu, 01 Jan 1970 00:00:00 GMT", "tomorrow", ""]
    answers = [*(httpx2.Response(429, headers={"Retry-After": text}) for text in stated), httpx2.Response(404)]
    paused: list[float] = []
    monkeypatch.setattr(time, "sleep", paused.append)
    assert log_source(lambda _: answers.pop(0)).read_proof("00") is None
    assert paused == [1, 1, 1, 1, 7, 60, 1, 1, 1]


async def test_a_witness_of_ours_cosigns_and_an_auditor_counts_it(
    service: Service, ctx: Context, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    arguments = [
        "log", "witness", "--state", str(tmp_path / "witness.json"), "--name", "witness.example/w1",
        "--log", vkey_of(service), "--port", "0",
    ]  # fmt: skip
    vkey, shown = "", f"/{hashlib.sha256(b'core.test/v1/log').hexdigest()}/checkpoint"
    for size in (5, 8):
        with running_command(share_command_server(), arguments, environ({}), streams=(str(output), "/dev/null")):
            until(lambda: "http://" in output.read_text(), 30)
            known, (vkey, url) = vkey, output.read_text().split()
            # It is killed in between, and has the key and what it has seen: a new worker asks from the empty tree.
            seen = httpx2.get(url + shown)
            assert (known, seen.status_code) == (("", 404) if size == 5 else (vkey, 200))
            assert size == 5 or seen.text.startswith("core.test/v1/log\n5\n")
            witness = Witness(parse_verifier_key(vkey, types=(COSIGNATURE,)), url)
            queue_documents(service, 3, str(size))
            await integrate(ctx, witness)
            assert httpx2.get(url + shown).text.startswith(f"core.test/v1/log\n{size}\n")
        found = verify(service, "--vkey", vkey_of(service), "--witness", vkey)
        assert (found.status, found.out) == (0, f"core.test/v1/log: whole and consistent, {size} entries\n")
    service.run_sql(ALTER_COSIGNATURE)
    assert "0 of the given witnesses" in verify(service, "--vkey", vkey_of(service), "--witness", vkey).refusal
    await renew_log(ctx, "core.test/v1/log")
    assert "0 of the given witnesses" in verify(service, "--vkey", vkey_of(service), "--witness", vkey).refusal


async def test_an_operator_replaces_the_key_of_the_log(service: Service, ctx: Context, tmp_path: Path) -> None:
    state = str(tmp_path / "log.json")
    old = vkey_of(service)
    assert verify(service, "--state", state).status == 0
    assert on_database(service, "rotate-key").status == 0
    new, _ = keys = service.client.get("/v1/log").json()["vkeys"]
    assert keys[1] == old
    refusal = on_database(service, "retire-key", old.split("+")[1]).refusal
    assert "no key but" in refusal
    assert refusal.endswith("others will with the log's next entry"), "not to make yet another"
    queue_documents(service, 1)
    await integrate(ctx)
    for key in keys:
        assert verify(service, "--vkey", key).status == 0
    for _ in range(2):
        assert on_database(service, "retire-key", old.split("+")[1]).status == 0
    assert service.client.get("/v1/log").json()["vkeys"] == [new]
    queue_documents(service, 1, "more")
    await integrate(ctx)
    assert "not signed by a key of the log" in verify(service, "--state", state).refusal
    assert verify(service, "--state", state, "--vkey", new).status == 0
    assert "no key 01234567" in on_database(service, "retire-key", "01234567").refusal


async def test_only_a_stopped_log_is_renewed_and_only_a_restored_one_goes_on(service: Service, ctx: Context) -> None:
    def reason() -> Any:
        return service.client.get("/v1/log").json()["stopped_reason"]

    assert "is not stopped" in on_database(service, "renew", "--origin", "new.test/v1/log").refusal
    assert "add --i-know-it-may-fork" in on_database(service, "resume").refusal
    for stopped in ("witness_conflict", "tree_damaged"):
        service.run_sql("UPDATE log_state SET stopped_reason = %s", stopped)
        assert "renew" in on_database(service, "resume", "--i-know-it-may-fork").refusal
    service.run_sql("UPDATE log_state SET stopped_reason = 'restored'")
    assert on_database(service, "resume", "--i-know-it-may-fork").status == 0
    assert reason() is None
    service.run_sql("UPDATE log_state SET stopped_reason = 'witness_conflict'")
    assert "needs another origin" in on_database(service, "renew", "--origin", "core.test/v1/log").refusal
    done = on_database(service, "renew", "--origin", "new.test/v1/log")
    assert (done.status, reason()) == (0, None), done
    assert vkey_of(service) in done.out
    assert ctx is not None
