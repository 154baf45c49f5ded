"""`soundmark log witness` over its HTTP interface, asked as `aics-witness` asks: what it cosigns, and what it refuses.

Source: C2SP, tlog-witness.
"""

import hashlib
import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from support.log.independent import witness as aics
from support.log.other_log import OtherLog
from support.processes.command_server import running_command, share_command_server
from support.processes.fake_clock import FakeClock
from support.processes.up_process import until

from soundmark.cli import Refused
from soundmark.cli.log_witness import WitnessFile, make_app
from soundmark.core.domain.log.witness import SIZE_TYPE
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.signed_notes import parse_verifier_key

from .conftest import environ, run

NAME: Final = "witness.example/w1"
LOG: Final = OtherLog(b"entry %d" % number for number in range(300))
FORK: Final = OtherLog([*LOG.entries[:3], *(b"other %d" % number for number in range(297))])
UNKNOWN: Final = OtherLog([b"entry"], origin="unknown.test/v1/log")
IMPOSTOR: Final = OtherLog(LOG.entries, seed=8)


class WitnessInProcess:
    """A witness without a socket."""

    def __init__(self, path: Path, *logs: OtherLog) -> None:
        self.file: Final = WitnessFile.open(path, NAME, SystemEntropy())
        keys = [parse_verifier_key(log.vkey) for log in logs or (LOG,)]
        app: Any = make_app(self.file, keys, FakeClock())
        self.client: Final = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://witness.test")

    async def add(self, body: bytes) -> httpx2.Response:
        return await self.client.post("/add-checkpoint", content=body)

    async def shown(self, origin: str = LOG.origin) -> httpx2.Response:
        return await self.client.get(f"/{hashlib.sha256(origin.encode()).hexdigest()}/checkpoint")

    async def size(self) -> int:
        """Return what it shows to have cosigned, 0 for nothing."""
        shown = await self.shown()
        return 0 if shown.status_code == 404 else int(shown.text.split("\n")[1])


@pytest.fixture
async def cosigner(tmp_path: Path) -> AsyncIterator[WitnessInProcess]:
    """A witness that has cosigned five entries of the log."""
    made = WitnessInProcess(tmp_path / "witness.json")
    assert (await made.add(LOG.ask(0, 5))).status_code == 200
    yield made
    await made.client.aclose()


async def test_it_cosigns_a_tree_that_extends_what_it_has_seen(cosigner: WitnessInProcess) -> None:
    for old_size, size in ((5, 5), (5, 8), (8, 256), (256, 257), (257, 300), (300, 300)):
        answer = await cosigner.add(LOG.ask(old_size, size))
        assert answer.status_code == 200, answer.text
        assert LOG.is_cosigned(answer.text, str(cosigner.file.vkey), size)
        assert await cosigner.size() == size


async def test_it_shows_the_checkpoint_that_it_cosigned_last(cosigner: WitnessInProcess) -> None:
    shown = await cosigner.shown()
    signed, _, cosignature = shown.text.rpartition("\u2014")
    assert signed.encode() == LOG.checkpoint(5)
    assert LOG.is_cosigned("\u2014" + cosignature, str(cosigner.file.vkey), 5)
    for unknown in (UNKNOWN.origin, LOG.origin + "/", ""):
        assert (await cosigner.shown(unknown)).status_code == 404
    assert (await cosigner.client.get(f"/{LOG.origin}/checkpoint")).status_code == 404


def malformed() -> dict[str, bytes]:
    good = LOG.ask(5, 8)
    first, _, rest = good.partition(b"\n")
    hash_line = rest.split(b"\n")[0]
    checkpoint = LOG.checkpoint(8)
    return {
        "empty": b"",
        "no size": rest,
        "another word": good.replace(b"old ", b"new ", 1),
        "a size with a zero before it": good.replace(b"old 5", b"old 05", 1),
        "a negative size": good.replace(b"old 5", b"old -5", 1),
        "a size that is too long": good.replace(b"old 5", b"old 50000000000000000000", 1),
        "no empty line": good.replace(b"\n\n", b"\n", 1),
        "no checkpoint": good.partition(b"\n\n")[0] + b"\n\n",
        "a checkpoint without signature": good.rpartition(b"\n\n")[0] + b"\n",
        "a hash that is no base64": good.replace(hash_line, b"?" * 44, 1),
        "a hash of 31 bytes": good.replace(hash_line, b"A" * 41 + b"w==", 1),
        "64 hashes": first + b"\n" + (hash_line + b"\n") * 64 + b"\n" + checkpoint,
        "a root that is no hash": good.replace(b"\n8\n", b"\n8\nAAAA", 1),
        "a checkpoint with an extension": good.replace(b"\n8\n", b"\n8\nmore\n", 1),
        "not UTF-8": good.replace(b"other.test", b"\xff\xfe", 1),
        "an older size than the one from which it grew": LOG.ask(9, 8, proof=[]),
    }


async def test_a_malformed_request_is_refused(cosigner: WitnessInProcess, subtests: pytest.Subtests) -> None:
    for name, body in malformed().items():
        with subtests.test(name):
            answer = await cosigner.add(body)
            assert (answer.status_code, await cosigner.size()) == (400, 5), answer.text
            assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    lines = malformed()["64 hashes"].split(b"\n")
    assert (await cosigner.add(b"\n".join([lines[0], *lines[2:]]))).status_code == 422, "63 hashes that prove nothing"
    assert (await cosigner.add(LOG.ask(5, 8))).status_code == 200


async def test_a_checkpoint_that_the_log_did_not_sign_is_refused(
    cosigner: WitnessInProcess, subtests: pytest.Subtests
) -> None:
    text, _, line = LOG.checkpoint(8).partition(b"\n\n")
    _, _, of_another_size = LOG.checkpoint(9).partition(b"\n\n")
    head = LOG.ask(5, 8).partition(b"\n\n")[0] + b"\n\n"
    forged = {
        "by another key of the same name": IMPOSTOR.ask(5, 8),
        "with the signature of another size": head + text + b"\n\n" + of_another_size,
        "under another name": head + text + b"\n\n" + line.replace(LOG.origin.encode(), UNKNOWN.origin.encode()),
    }
    for name, body in forged.items():
        with subtests.test(name):
            answer = await cosigner.add(body)
            assert (answer.status_code, await cosigner.size()) == (403, 5), answer.text


async def test_a_log_that_it_was_not_told_is_unknown(cosigner: WitnessInProcess) -> None:
    answer = await cosigner.add(UNKNOWN.ask(0))
    assert (answer.status_code, (await cosigner.shown(UNKNOWN.origin)).status_code) == (404, 404)


async def test_who_asks_from_elsewhere_is_told_where_it_is(cosigner: WitnessInProcess) -> None:
    for body in (LOG.ask(0, 8), LOG.ask(4, 8), LOG.ask(6, 8), LOG.ask(0, 5), LOG.ask(3, 3)):
        answer = await cosigner.add(body)
        assert (answer.status_code, answer.text, answer.headers["content-type"]) == (409, "5\n", SIZE_TYPE)
    assert SIZE_TYPE == aics.protocol.SIZE_CONTENT_TYPE
    assert await cosigner.size() == 5


async def test_a_split_view_is_refused(cosigner: WitnessInProcess, subtests: pytest.Subtests) -> None:
    """Both trees are signed by the log's key, and begin with the same three entries."""
    kept = (await cosigner.shown()).text
    views = {
        "another tree of the same size": FORK.ask(5, 5),
        "another tree that has grown": FORK.ask(5, 8),
        "the proof of the other tree": FORK.ask(5, 8, proof=LOG.prove(5, 8)),
        "the other proof": LOG.ask(5, 8, proof=FORK.prove(5, 8)),
        "no proof": LOG.ask(5, 8, proof=[]),
        "a hash too many": LOG.ask(5, 8, proof=[*LOG.prove(5, 8), bytes(32)]),
        "a proof where nothing has grown": LOG.ask(5, 5, proof=[bytes(32)]),
    }
    for name, body in views.items():
        with subtests.test(name):
            answer = await cosigner.add(body)
            assert (answer.status_code, (await cosigner.shown()).text) == (422, kept), answer.text


async def test_a_request_that_is_too_large_is_not_read_to_its_end(cosigner: WitnessInProcess) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1024
            yield bytes(1024)

    answer = await cosigner.client.post("/add-checkpoint", content=endless())
    assert (answer.status_code, sent) == (413, 129 * 1024)
    padded = LOG.ask(5, 8)
    assert (await cosigner.add(padded.ljust(128 * 1024, b"x"))).status_code == 400, "it is read, and is no note"


async def test_each_log_has_a_memory_of_its_own(tmp_path: Path) -> None:
    both = WitnessInProcess(tmp_path / "witness.json", LOG, UNKNOWN)
    assert [(await both.add(body)).status_code for body in (LOG.ask(0, 5), UNKNOWN.ask(0), LOG.ask(5, 8))] == [200] * 3
    assert (await both.shown(UNKNOWN.origin)).text.startswith(UNKNOWN.checkpoint().decode())
    await both.client.aclose()


async def test_another_app_on_the_same_file_has_its_key_and_its_memory(
    cosigner: WitnessInProcess, tmp_path: Path
) -> None:
    path = tmp_path / "witness.json"
    again = WitnessInProcess(path)
    assert again.file.vkey == cosigner.file.vkey
    assert (await again.shown()).text == (await cosigner.shown()).text
    assert (await again.add(LOG.ask(0, 8))).text == "5\n"
    assert (await again.add(FORK.ask(5, 8))).status_code == 422
    assert (await again.add(LOG.ask(5, 8))).status_code == 200
    await again.client.aclose()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_is_not_of_this_witness_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    path = tmp_path / "witness.json"
    with pytest.raises(Refused, match="give the new witness a name"):
        WitnessFile.open(path, None, SystemEntropy())
    WitnessFile.open(path, NAME, SystemEntropy())
    good = path.read_text("utf-8")
    assert WitnessFile.open(path, None, SystemEntropy()).name == NAME
    with pytest.raises(Refused, match=f"belongs to the witness {NAME}"):
        WitnessFile.open(path, "witness.example/w2", SystemEntropy())
    for text in (
        "",
        "[]",
        "{}",
        good.replace('"seed"', '"root"'),
        good.replace('"checkpoints": {}', '"checkpoints": 1'),
    ):
        path.write_text(text, "utf-8")
        with subtests.test(text), pytest.raises(Refused, match="is not the file of a witness"):
            WitnessFile.open(path, None, SystemEntropy())
    path.write_text(good, "utf-8")
    path.chmod(0o644)
    with pytest.raises(Refused, match="is not the file of a witness"):
        WitnessFile.open(path, None, SystemEntropy())


@contextmanager
def running_witness(folder: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Run the command, which is killed at the end; yield the witness's vkey, its URL, and how it was started."""
    output = folder / "out"
    state = ["--state", str(folder / "witness.json"), "--name", NAME]
    arguments = ["log", "witness", *state, "--log", LOG.vkey, "--port", "0"]
    with running_command(share_command_server(), arguments, environ({}), streams=(str(output), os.devnull)):
        until(lambda: "http://" in output.read_text(), 30)
        vkey, url = output.read_text().split()
        yield vkey, url, arguments


def test_a_witness_that_was_killed_knows_what_it_has_seen(tmp_path: Path) -> None:
    """A client of `aics-witness` asks it, and verifies each cosignature."""
    with running_witness(tmp_path) as (vkey, url, arguments):
        assert "another `soundmark log witness` uses" in run(*arguments).refusal
        with aics.WitnessClient(url, vkey) as client:
            client.submit(LOG.checkpoint(5), LOG.prove)
    with running_witness(tmp_path) as (again, url, _):
        assert again == vkey
        # This client knows nothing, and asks from the empty tree: only the witness can know.
        with aics.WitnessClient(url, vkey, max_conflicts=0) as client:
            with pytest.raises(aics.WitnessConflict) as conflict:
                client.submit(LOG.checkpoint(8), LOG.prove)
            assert conflict.value.known_size == 5
            with pytest.raises(aics.WitnessAhead):
                client.submit(LOG.checkpoint(3), LOG.prove, old_size=0)
            with pytest.raises(aics.WitnessRejected) as rejected:
                client.submit(FORK.checkpoint(8), FORK.prove, old_size=5)
            assert rejected.value.status == 422
        with aics.WitnessClient(url, vkey) as client:
            assert LOG.is_cosigned(client.submit(LOG.checkpoint(8), LOG.prove), vkey, 8)
