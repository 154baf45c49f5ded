"""The stores of unsettled issuances."""

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
from .issuing_service import CREDENTIAL, ISSUE, ISSUE_REQUEST, RECOVER, IssuingService, lose_answer, lose_request
from .stand_ins import FakeClock


def make_issuance(key: str, *, age_s: float = 0, body: bytes = b"{}") -> RememberedIssuance:
    return RememberedIssuance(key, "https://api.example.org", False, body, NOW - timedelta(seconds=age_s))


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RecoveryStore:
    """A store for the recovery of issuances, in memory or in a file."""
    return MemoryRecoveryStore() if request.param == "memory" else FileRecoveryStore(tmp_path / "recovery")


def test_a_store_lists_its_issuances_oldest_first(store: RecoveryStore) -> None:
    young, old = make_issuance("young"), make_issuance("old", age_s=60, body="é".encode())
    store.remember(young)
    store.remember(old)
    assert store.list_unsettled() == (old, young)
    assert store.list_unsettled()[0].body == "é".encode()
    store.remember(make_issuance("old", age_s=60, body=b"other"))
    assert [one.body for one in store.list_unsettled()] == [b"other", b"{}"]
    store.forget("old")
    store.forget("never there")
    assert store.list_unsettled() == (young,)


def test_a_file_survives_the_end_of_its_program(tmp_path: Path) -> None:
    with FileRecoveryStore(tmp_path / "recovery") as store:
        store.remember(make_issuance("one"))
    with FileRecoveryStore(tmp_path / "recovery") as store:
        assert store.list_unsettled() == (make_issuance("one"),)


def test_only_its_owner_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "recovery"
    path.touch(0o644)
    with FileRecoveryStore(path) as store:
        store.remember(make_issuance("one"))
        modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {0o600}


def test_a_file_belongs_to_one_program_at_a_time(tmp_path: Path) -> None:
    """Otherwise an issuance that the other program is working on would look left over."""
    path = tmp_path / "recovery"
    with FileRecoveryStore(path), pytest.raises(ValueError, match="Another program"):
        FileRecoveryStore(path)
    FileRecoveryStore(path).close()


def test_another_kind_of_file_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "recovery"
    path.write_text("Somebody's notes, which are long enough to be looked at, and which are no database at all." * 20)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="not a recovery file"):
        FileRecoveryStore(path)
    assert path.read_bytes() == before
    with pytest.raises(OSError, match="directory"):
        FileRecoveryStore(tmp_path)


def test_the_repr_of_a_measurement_hides_its_body() -> None:
    assert "secret" not in repr(make_issuance("one", body=b"secret"))


KILLED = f"""
import os, sys
from soundmark_sdk.client import Client, FileRecoveryStore
sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from tests.issuing_service import ISSUE_REQUEST

class Dying(FileRecoveryStore):
    def forget(self, key):
        os._exit(9)

Client(sys.argv[1], {CREDENTIAL!r}, recovery=Dying(sys.argv[2])).codes.issue(ISSUE_REQUEST)
"""


async def test_a_program_that_was_killed_finishes_its_issuance_when_it_runs_again(
    issuing: IssuingService, tmp_path: Path
) -> None:
    """It is killed after the service has answered and before it can use the answer."""
    path = tmp_path / "recovery"
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, issuing.url, str(path))
    assert await killed.wait() == 9
    with FileRecoveryStore(path) as store:
        async with AsyncClient(issuing.url, CREDENTIAL, recovery=store) as client:
            (left,) = await client.codes.list_unsettled()
            (code,) = await client.codes.resume(left)
            assert await client.codes.list_unsettled() == ()
    assert code.xr_id == "xr_" + "0" * 22
    assert issuing.routes == [ISSUE, RECOVER]
    assert issuing.state.issued == len(issuing.keys) == 1


async def test_the_same_call_in_another_run_finishes_an_unsettled_issuance(
    issuing: IssuingService, clock: FakeClock, tmp_path: Path
) -> None:
    clock.at = NOW
    issuing.add_faults(lose_answer, lose_request)
    with FileRecoveryStore(tmp_path / "recovery") as store:
        async with AsyncClient(issuing.url, CREDENTIAL, recovery=store, attempts_max=2, clock=clock) as client:
            with pytest.raises(ClientFailure):
                await client.codes.issue(ISSUE_REQUEST)
    with FileRecoveryStore(tmp_path / "recovery") as store:
        async with AsyncClient(issuing.url, CREDENTIAL, recovery=store, clock=clock) as client:
            await client.codes.issue(ISSUE_REQUEST)
        assert store.list_unsettled() == ()
    assert issuing.state.issued == len(issuing.keys) == 1
