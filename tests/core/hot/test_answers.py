"""From stored broadcasts to answers: what does not verify is never answered, whatever is stored."""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from structlog.testing import capture_logs
from support.processes.fake_clock import FakeClock

from soundmark.core.hot.answers import Answers, Question
from soundmark.core.problems import CodeExpired, CodeUnavailable
from soundmark.core.store.codes.broadcasts import Broadcast
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.signing import Keyring, PublicKey, SigningKey
from soundmark.kit.text import base64url

VECTORS: Final = json.loads((Path(__file__).parents[3] / "docs" / "vectors" / "xr-code-v1.json").read_text("utf-8"))
CASES: Final = {case["name"]: case for case in VECTORS["cases"]}
KEYS: Final = [SigningKey.from_seed(name, base64url.decode(seed)) for name, seed in VECTORS["seeds"].items()]
EXAMPLE: Final = CASES["the example of the API document"]
EXPIRES_AT: Final = datetime.fromisoformat(EXAMPLE["signed_code"]["expires_at"])
TOKEN: Final = EXAMPLE["token"]


class CountingKeyring(Keyring):
    """A keyring that counts the signatures that it verified."""

    verified_count = 0

    def verifies(self, key_id: str, message: bytes, signature: bytes) -> bool:
        self.verified_count += 1
        return super().verifies(key_id, message, signature)


def make_keyring(keys: Iterable[SigningKey]) -> CountingKeyring:
    return CountingKeyring({key.key_id: PublicKey(key.key_id, key.public_key, "active") for key in keys}, KEYS[0])


class HeldKeyring:
    """The keyring of this process, and the key that another process has made since."""

    def __init__(self) -> None:
        self.keyring = make_keyring(KEYS[:1])
        self.asked: list[str] = []

    async def keyring_with(self, key_id: str) -> CountingKeyring:
        self.asked.append(key_id)
        return make_keyring(KEYS)


@pytest.fixture
def live() -> HeldKeyring:
    """A keyring that the test changes."""
    return HeldKeyring()


@pytest.fixture
def still() -> FakeClock:
    """A clock that stands just before the expiry."""
    clock = FakeClock()
    clock.frozen_at = EXPIRES_AT - timedelta(milliseconds=1)
    return clock


@pytest.fixture
def answers(live: HeldKeyring, still: FakeClock) -> Answers:
    """The maker of answers."""
    return Answers(live, still, SystemEntropy())  # type: ignore[arg-type]  # it has the members that are used


def stored(case: dict[str, Any], **changes: Any) -> dict[str, Broadcast]:
    broadcast = Broadcast(case["token"], case["canonical"].encode(), base64url.decode(case["signature"]))
    broadcast = broadcast._replace(**changes)
    return {broadcast.token: broadcast}


def ask(*, wants_proof: bool = False, token: str = TOKEN) -> Question:
    return Question(token, wants_proof)


async def test_each_question_gets_its_answer_and_the_same_ones_share_it(answers: Answers) -> None:
    questions = [ask(), ask(wants_proof=True), ask(token="brd_" + "u" * 16), ask(), ask(wants_proof=True)]
    plain, proven, unknown, *repeated = await answers.of(questions, stored(EXAMPLE))
    assert isinstance(plain, bytes)
    assert isinstance(proven, bytes)
    assert json.loads(plain)["xr_id"] == EXAMPLE["signed_code"]["xr_id"]
    assert json.loads(proven).keys() - json.loads(plain).keys() == {"resolution_proof"}
    assert isinstance(unknown, CodeUnavailable)
    assert repeated[0] is plain
    assert repeated[1] is proven


async def test_each_question_about_a_measured_code_gets_a_proof_of_its_own(answers: Answers) -> None:
    one, other, proven = [
        json.loads(answer)  # type: ignore[arg-type]  # bytes, or this fails
        for answer in await answers.of([ask(), ask(), ask(wants_proof=True)], stored(CASES["measured"]))
    ]
    proof_ids = {each["measurement_proof"]["proof_id"] for each in (one, other, proven)}
    assert len(proof_ids) == 3
    assert all(proof_id.startswith("prf_") and len(proof_id) == 26 for proof_id in proof_ids)
    assert ["resolution_proof" in each for each in (one, other, proven)] == [False, False, True]


async def test_a_code_expires_at_its_time(answers: Answers, still: FakeClock) -> None:
    still.frozen_at = EXPIRES_AT
    assert isinstance((await answers.of([ask()], stored(EXAMPLE)))[0], CodeExpired)


ALTERED: Final[dict[str, dict[str, Any]]] = {
    "another token": {"token": "brd_" + "u" * 16},
    "another payload": {"payload": EXAMPLE["canonical"].replace('"version":1', '"version":1 ').encode()},
    "another Code's payload": {"payload": CASES["measured"]["canonical"].encode()},
    "another signature": {"signature": bytes(64)},
    "a shorter signature": {"signature": base64url.decode(EXAMPLE["signature"])[:-1]},
    "a longer signature": {"signature": base64url.decode(EXAMPLE["signature"]) + b"\0"},
    "an unreadable payload": {"payload": b"{}"},
}


@pytest.mark.parametrize("is_cached", [False, True])
@pytest.mark.parametrize("alteration", ALTERED)
async def test_what_does_not_verify_is_unavailable_and_reported(
    answers: Answers, alteration: str, *, is_cached: bool
) -> None:
    if is_cached:
        assert isinstance((await answers.of([ask()], stored(EXAMPLE)))[0], bytes)
    altered = stored(EXAMPLE, **ALTERED[alteration])
    with capture_logs() as logs:
        (outcome,) = await answers.of([ask(token=next(iter(altered)))], altered)
    assert isinstance(outcome, CodeUnavailable)
    xr_id = None if alteration == "an unreadable payload" else EXAMPLE["signed_code"]["xr_id"]
    assert [(line["event"], line["reader"], line["xr_id"]) for line in logs] == [
        ("stored_code_does_not_verify", "resolution", xr_id)
    ]


async def test_verified_bytes_are_not_verified_again(answers: Answers, live: HeldKeyring) -> None:
    for _ in range(3):
        assert isinstance((await answers.of([ask()], stored(EXAMPLE)))[0], bytes)
    assert live.keyring.verified_count == 1


async def test_a_key_that_is_unknown_is_read_before_the_code_is_judged(answers: Answers, live: HeldKeyring) -> None:
    retiring = CASES["signed by a key that is retiring"]
    assert isinstance((await answers.of([ask()], stored(retiring)))[0], bytes)
    assert live.asked == [KEYS[1].key_id]
    assert isinstance((await answers.of([ask()], stored(EXAMPLE)))[0], bytes)
    assert live.asked == [KEYS[1].key_id]


async def test_a_code_by_a_key_that_nobody_knows_is_unavailable(answers: Answers, live: HeldKeyring) -> None:
    key_id = KEYS[0].key_id.replace("c2ln", "c2lo")
    payload = EXAMPLE["canonical"].replace(KEYS[0].key_id, key_id).encode()
    altered = stored(EXAMPLE, payload=payload, signature=KEYS[0].sign(payload))
    with capture_logs() as logs:
        (outcome,) = await answers.of([ask()], altered)
    assert isinstance(outcome, CodeUnavailable)
    assert (live.asked, len(logs)) == ([key_id], 1)
