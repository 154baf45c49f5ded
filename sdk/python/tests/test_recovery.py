"""Where issuances are remembered."""

import asyncio
import stat
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from soundmark_sdk.client import (
    AsyncClient,
    ClientFailure,
    FileRecoveryStore,
    MemoryRecoveryStore,
    RecoveryStore,
    RememberedIssuance,
)

from .issuer import NOW
from .issuing_service import CREDENTIAL, ISSUE, RECOVER, WISH, IssuingService, lost_after, lost_before
from .stand_ins import FakeClock


def remembered(key: str, *, age_s: float = 0, body: bytes = b"{}") -> RememberedIssuance:
    return RememberedIssuance(key, "https://api.example.org", False, body, NOW - timedelta(seconds=age_s))


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RecoveryStore:
    return MemoryRecoveryStore() if request.param == "memory" else FileRecoveryStore(tmp_path / "recovery")


def test_a_store_keeps_what_it_is_given_oldest_first(store: RecoveryStore) -> None:
    young, old = remembered("young"), remembered("old", age_s=60, body="é".encode())
    store.remember(young)
    store.remember(old)
    assert store.unsettled() == (old, young)
    assert store.unsettled()[0].body == "é".encode()
    store.remember(remembered("old", age_s=60, body=b"other"))
    assert [one.body for one in store.unsettled()] == [b"other", b"{}"]
    store.forget("old")
    store.forget("never there")
    assert store.unsettled() == (young,)


def test_a_file_outlives_its_program(tmp_path: Path) -> None:
    with FileRecoveryStore(tmp_path / "recovery") as store:
        store.remember(remembered("one"))
    with FileRecoveryStore(tmp_path / "recovery") as store:
        assert store.unsettled() == (remembered("one"),)


def test_a_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "recovery"
    path.touch(0o644)
    with FileRecoveryStore(path) as store:
        store.remember(remembered("one"))
        modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {0o600}


def test_a_file_belongs_to_one_program_at_a_time(tmp_path: Path) -> None:
    """What another one is in the middle of would be taken for something that was left over."""
    path = tmp_path / "recovery"
    with FileRecoveryStore(path), pytest.raises(ValueError, match="another program"):
        FileRecoveryStore(path)
    FileRecoveryStore(path).close()


def test_what_is_no_recovery_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "recovery"
    path.write_text("Somebody's notes, which are long enough to be looked at, and which are no database at all." * 20)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="not one"):
        FileRecoveryStore(path)
    assert path.read_bytes() == before
    with pytest.raises(OSError, match="directory"):
        FileRecoveryStore(tmp_path)


def test_a_body_stands_in_no_text() -> None:
    assert "secret" not in repr(remembered("one", body=b"secret"))


KILLED = f"""
import os, sys
from soundmark_sdk.client import Client, FileRecoveryStore
sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from tests.issuing_service import WISH

class Dying(FileRecoveryStore):
    def forget(self, key):
        os._exit(9)

Client(sys.argv[1], {CREDENTIAL!r}, recovery=Dying(sys.argv[2])).codes.issue(WISH)
"""


async def test_a_program_that_was_killed_finishes_its_issuance_when_it_runs_again(
    issuing: IssuingService, tmp_path: Path
) -> None:
    """Killed after the service had answered, and before anything could be done with the answer."""
    path = tmp_path / "recovery"
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, issuing.url, str(path))
    assert await killed.wait() == 9
    with FileRecoveryStore(path) as store:
        async with AsyncClient(issuing.url, CREDENTIAL, recovery=store) as client:
            (left,) = await client.codes.unsettled()
            (code,) = await client.codes.resume(left)
            assert await client.codes.unsettled() == ()
    assert code.xr_id == "xr_" + "0" * 22
    assert issuing.routes == [ISSUE, RECOVER]
    assert issuing.state.issued == len(issuing.keys) == 1


async def test_the_same_call_in_another_run_finishes_what_was_left(
    issuing: IssuingService, clock: FakeClock, tmp_path: Path
) -> None:
    clock.at = NOW
    issuing.befall(lost_after, lost_before)
    with FileRecoveryStore(tmp_path / "recovery") as store:
        async with AsyncClient(issuing.url, CREDENTIAL, recovery=store, attempts_max=2, clock=clock) as client:
            with pytest.raises(ClientFailure):
                await client.codes.issue(WISH)
    with FileRecoveryStore(tmp_path / "recovery") as store:
        async with AsyncClient(issuing.url, CREDENTIAL, recovery=store, clock=clock) as client:
            await client.codes.issue(WISH)
        assert store.unsettled() == ()
    assert issuing.state.issued == len(issuing.keys) == 1
