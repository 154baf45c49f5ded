"""A receiver with `require_logged`: without a proof from the pinned log, there is no intent."""

from typing import Any

import pytest
from soundmark_sdk import AsyncReceiver, LogPolicy, ReceiverFailure, Resolution

from .genuine_log import ORIGIN, GenuineLog, Signer, digest_of, encode_url
from .issuer import INTENT, MEASURED, TOKEN, UNMEASURED, XR_ID, Issuer, compact, digest
from .stand_ins import FakeClock, Service, make_response

ANSWER = {"xr_id": XR_ID, "token_digest": digest(TOKEN), "intent": INTENT, "policy": UNMEASURED}
DIGEST = digest_of("code.issued/answer", ANSWER)
PROOF = f"/v1/log/proofs/{DIGEST}"


@pytest.fixture
def log_key() -> Signer:
    """The log's key, which the receiver has pinned."""
    return Signer(ORIGIN)


def prove(*signers: Signer, **changes: Any) -> bytes:
    log = GenuineLog(list(signers))
    code = encode_url(b"\7" * 32)
    log.add({"v": 1, "kind": "code.issued", "code": code, "answer": DIGEST, **changes})
    return log.prove(0).encode()


async def resolve(service: Service, clock: FakeClock, policy: LogPolicy, count: int = 1) -> Resolution:
    async with AsyncReceiver(service.url, clock=clock, require_logged=policy) as receiver:
        for _ in range(count - 1):
            await receiver.resolve(TOKEN)
        return await receiver.resolve(TOKEN)


async def test_a_logged_answer_is_returned_and_its_proof_kept(
    service: Service, clock: FakeClock, log_key: Signer
) -> None:
    service.others[PROOF] = make_response(200, prove(log_key))
    assert (await resolve(service, clock, LogPolicy(log_key.vkey), count=3)).xr_id == XR_ID
    assert service.paths().count(PROOF) == 1


async def test_the_proof_of_a_measured_answer_does_not_depend_on_its_measurement(
    service: Service, clock: FakeClock, log_key: Signer, issuer: Issuer
) -> None:
    service.resolve = make_response(200, compact(issuer.measured_answer()))
    committed = digest_of("code.issued/answer", {**ANSWER, "policy": MEASURED})
    service.others[f"/v1/log/proofs/{committed}"] = make_response(200, prove(log_key, answer=committed))
    assert (await resolve(service, clock, LogPolicy(log_key.vkey))).xr_id == XR_ID


async def test_an_answer_is_awaited_for_ten_seconds(service: Service, clock: FakeClock, log_key: Signer) -> None:
    service.others[PROOF] = make_response(404)
    began_s = clock.monotonic_s()
    with pytest.raises(ReceiverFailure, match="does not have") as failure:
        await resolve(service, clock, LogPolicy(log_key.vkey))
    assert failure.value.reason == "unverifiable"
    assert 10 <= clock.monotonic_s() - began_s <= 12
    assert service.paths().count(PROOF) == 11


async def test_the_witnesses_of_a_fresh_checkpoint_are_awaited(
    service: Service, clock: FakeClock, log_key: Signer
) -> None:
    """A service without a quorum of its own publishes each checkpoint before anybody has cosigned it."""
    witness = Signer("witness.example", 4)
    fresh, cosigned = make_response(200, prove(log_key)), make_response(200, prove(log_key, witness))
    policy = LogPolicy(log_key.vkey, [witness.vkey], 1)
    service.others[PROOF] = [fresh, fresh, cosigned]
    assert (await resolve(service, clock, policy)).xr_id == XR_ID
    service.others[PROOF] = fresh
    began_s = clock.monotonic_s()
    with pytest.raises(ReceiverFailure, match="Too few witnesses") as failure:
        await resolve(service, clock, policy)
    assert failure.value.reason == "unverifiable"
    assert 10 <= clock.monotonic_s() - began_s <= 12


async def test_a_wrong_proof_is_unverifiable(
    service: Service, clock: FakeClock, log_key: Signer, subtests: pytest.Subtests
) -> None:
    policy = LogPolicy(log_key.vkey)
    quorum = LogPolicy(log_key.vkey, [Signer("witness.example", 4).vkey], 1)
    cases = {
        "another key": (prove(Signer(ORIGIN)), policy),
        "another answer": (prove(log_key, answer=digest_of("code.issued/answer", {**ANSWER, "xr_id": "x"})), policy),
        "a revocation": (prove(log_key, kind="code.revoked"), policy),
        "no witness": (prove(log_key), quorum),
        "no proof": (b"nothing", policy),
    }
    for name, (proof, believed) in cases.items():
        service.others[PROOF] = make_response(200, proof)
        with subtests.test(name), pytest.raises(ReceiverFailure) as failure:
            await resolve(service, clock, believed)
        assert failure.value.reason == "unverifiable"


async def test_a_service_without_a_log_gives_no_intent(
    service: Service, clock: FakeClock, log_key: Signer, subtests: pytest.Subtests
) -> None:
    for status, reason in ((503, "temporarily_unavailable"), (403, "unverifiable"), (301, "unverifiable")):
        service.others[PROOF] = make_response(status)
        with subtests.test(status), pytest.raises(ReceiverFailure) as failure:
            await resolve(service, clock, LogPolicy(log_key.vkey))
        assert failure.value.reason == reason
