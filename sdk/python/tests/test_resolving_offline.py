"""A receiver with packs answers from them only while the service cannot be reached, and never as if it were fresh."""

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from soundmark_sdk import (
    AsyncReceiver,
    Consent,
    DeviceSecret,
    LogPolicy,
    MeasurementRefused,
    OfflinePack,
    OfflineResolution,
    Receiver,
    ReceiverFailure,
    Resolution,
    measure,
    verify_offline_pack,
)

from .genuine_log import ORIGIN, GenuineLog, Signer
from .issuer import INTEGRATION_ID, NOW, TOKEN, Issuer, digest, timestamp
from .stand_ins import FakeClock, Service, make_response
from .test_offline_pack import CAMPAIGN, KEYS, LIFE, make_codes, make_document, make_pack

CODE: Final = {**make_codes(0)[0], "token_digest": digest(TOKEN)}
NOWHERE: Final = "http://127.0.0.1:9"
HOUR_S: Final = 3600


def pack_at(at: datetime = NOW, **changes: Any) -> OfflinePack:
    return make_pack(at, **{"codes": [CODE], **changes})


@pytest.fixture
def log_key() -> Signer:
    """The log's key, which the receiver has pinned."""
    return Signer(ORIGIN)


async def find(clock: FakeClock, *packs: OfflinePack, **options: Any) -> OfflineResolution | None:
    """Return what a receiver without a network answers."""
    async with AsyncReceiver(NOWHERE, clock=clock, packs=packs, **options) as receiver:
        return await ask(receiver)


async def ask(receiver: AsyncReceiver) -> OfflineResolution | None:
    try:
        found = await receiver.resolve(TOKEN)
    except ReceiverFailure as failure:
        if failure.reason != "network":
            raise
        return None
    assert isinstance(found, OfflineResolution)
    return found


async def test_a_pack_answers_as_of_its_own_time_while_nothing_answers(clock: FakeClock) -> None:
    clock.advance(HOUR_S)
    found = await find(clock, pack_at())
    assert found is not None
    assert (found.as_of, found.valid_until, found.xr_id) == (NOW, NOW + LIFE, CODE["xr_id"])
    assert not isinstance(found, Resolution)
    assert await find(clock) is None


def test_the_blocking_receiver_does_the_same(clock: FakeClock) -> None:
    with Receiver(NOWHERE, clock=clock) as receiver:
        with pytest.raises(ReceiverFailure, match="network"):
            receiver.resolve(TOKEN)
        receiver.add_pack(pack_at())
        found = receiver.resolve(TOKEN)
    assert isinstance(found, OfflineResolution)
    assert found.as_of == NOW


async def test_only_a_service_that_cannot_be_reached_is_replaced(
    service: Service, clock: FakeClock, subtests: pytest.Subtests
) -> None:
    """Whatever else the service answers stands: above all, that the Code was revoked."""
    for status, reason in (
        (502, None),
        (503, None),
        (504, None),
        (404, "code_unavailable"),
        (410, "expired"),
        (429, "rate_limited"),
        (500, "temporarily_unavailable"),
        (501, "temporarily_unavailable"),
        (302, "unverifiable"),
        (200, "unverifiable"),
    ):
        service.resolve = make_response(status)
        async with AsyncReceiver(service.url, clock=clock, packs=[pack_at()], attempts_max=1) as receiver:
            with subtests.test(status=status):
                if reason is None:
                    assert await ask(receiver) is not None
                else:
                    with pytest.raises(ReceiverFailure) as failure:
                        await receiver.resolve(TOKEN)
                    assert failure.value.reason == reason


async def test_an_answer_of_the_service_is_preferred_and_its_keys_may_be_what_is_missing(
    service: Service, clock: FakeClock
) -> None:
    async with AsyncReceiver(service.url, clock=clock, packs=[pack_at()], attempts_max=1) as receiver:
        assert isinstance(await receiver.resolve(TOKEN), Resolution)
    service.keys = make_response(503)
    async with AsyncReceiver(service.url, clock=clock, packs=[pack_at()], attempts_max=1) as receiver:
        both = await asyncio.gather(ask(receiver), ask(receiver))
    assert all(each is not None for each in both), "callers who share a fetch share its outage"


async def test_a_pack_is_silent_after_its_end_and_after_that_of_the_code(clock: FakeClock) -> None:
    ending = {**CODE, "expires_at": timestamp(NOW + timedelta(hours=1))}
    async with AsyncReceiver(NOWHERE, clock=clock, packs=[pack_at(codes=[ending])]) as receiver:
        clock.advance(HOUR_S - 1)
        assert await ask(receiver) is not None
        clock.advance(1)
        assert await ask(receiver) is None
    clock.at = NOW
    async with AsyncReceiver(NOWHERE, clock=clock, packs=[pack_at()]) as receiver:
        clock.advance(LIFE.total_seconds() - 1)
        assert await ask(receiver) is not None
        clock.advance(1)
        assert await ask(receiver) is None


async def test_a_newer_pack_that_leaves_the_code_out_silences_the_older(
    clock: FakeClock, subtests: pytest.Subtests
) -> None:
    """Also a pack that is added later, or has ended; the order does not matter."""
    later = NOW + timedelta(minutes=1)
    clock.at = later + timedelta(minutes=10)
    old = pack_at(campaign_id=CAMPAIGN)
    for name, newer in (
        ("the same campaign's", pack_at(later, campaign_id=CAMPAIGN, codes=[])),
        ("the project's", pack_at(later, codes=[])),
        ("an ended one", pack_at(later, codes=[], valid_until=timestamp(later + timedelta(minutes=5)))),
    ):
        with subtests.test(name):
            assert await find(clock, old, newer) is None
            assert await find(clock, newer, old) is None
            async with AsyncReceiver(NOWHERE, clock=clock, packs=[old]) as receiver:
                assert await ask(receiver) is not None
                await receiver.add_pack(newer)
                assert await ask(receiver) is None
    assert await find(clock, old, pack_at(later, campaign_id=CAMPAIGN[:-1] + "G", codes=[])) is not None


async def test_a_clock_that_was_set_back_is_noticed(clock: FakeClock) -> None:
    """Time passes however the clock is set, and no pack was made in the future, whatever it is about."""
    tolerated = timedelta(minutes=2)
    async with AsyncReceiver(NOWHERE, clock=clock, packs=[pack_at()]) as receiver:
        clock.advance(HOUR_S)
        clock.at -= tolerated
        assert await ask(receiver) is not None
        clock.at -= timedelta(seconds=1)
        assert await ask(receiver) is None, "two minutes less than the time that has passed since the pack was added"
        clock.at = NOW + timedelta(hours=1)
        assert await ask(receiver) is not None
        clock.advance(LIFE.total_seconds() - HOUR_S)
        clock.at -= tolerated
        assert await ask(receiver) is None, "ended, although the clock is within its tolerance"
    clock.at = NOW
    other = pack_at(NOW + timedelta(minutes=3), project_id="prj_another", codes=[])
    assert await find(clock, pack_at(), other) is None


async def test_an_answer_of_the_service_tells_the_time_too(service: Service, clock: FakeClock) -> None:
    old = pack_at(NOW - timedelta(hours=5))
    async with AsyncReceiver(service.url, clock=clock, packs=[old], attempts_max=1) as receiver:
        assert isinstance(await receiver.resolve(TOKEN), Resolution)
        service.resolve = make_response(503)
        assert await ask(receiver) is not None
        clock.at = NOW - timedelta(hours=1)
        with pytest.raises(ReceiverFailure, match="temporarily_unavailable"):
            await receiver.resolve(TOKEN)


async def test_with_require_logged_a_pack_without_its_proof_is_not_shown(
    clock: FakeClock, log_key: Signer, subtests: pytest.Subtests
) -> None:
    """It still silences older packs, since it is genuine."""
    signed = Issuer().signed(make_document(codes=[CODE]))
    bare = verify_offline_pack(signed, KEYS)

    def prove(signer: Signer, of: str, kind: str = "document.sealed") -> bytes:
        log = GenuineLog([signer])
        log.add({"v": 1, "kind": kind, kind.split(".")[1].replace("sealed", "document"): of})
        return log.prove(0).encode()

    witness = Signer("witness.example", 4)
    for name, proof, policy, is_shown in (
        ("proven", prove(log_key, bare.digest), LogPolicy(log_key.vkey), True),
        ("no proof", None, LogPolicy(log_key.vkey), False),
        ("another log", prove(Signer(ORIGIN), bare.digest), LogPolicy(log_key.vkey), False),
        ("another document", prove(log_key, digest("another")), LogPolicy(log_key.vkey), False),
        ("no witness", prove(log_key, bare.digest), LogPolicy(log_key.vkey, [witness.vkey], 1), False),
        ("not a proof", b"nothing", LogPolicy(log_key.vkey), False),
    ):
        pack = verify_offline_pack(signed, KEYS, proof=proof)
        with subtests.test(name):
            assert (await find(clock, pack, require_logged=policy) is not None) == is_shown
            assert await find(clock, pack) is not None
    proven = verify_offline_pack(signed, KEYS, proof=prove(log_key, bare.digest))
    later = NOW + timedelta(minutes=1)
    policy = LogPolicy(log_key.vkey)
    assert await find(clock, proven, pack_at(later), require_logged=policy) is not None
    assert await find(clock, proven, pack_at(later, codes=[]), require_logged=policy) is None


async def test_an_answer_from_a_pack_is_not_measured(clock: FakeClock) -> None:
    found = await find(clock, pack_at())
    assert found is not None
    with pytest.raises(MeasurementRefused, match="not_measured"):
        measure(
            found,
            consent=Consent(INTEGRATION_ID, given_at=NOW),
            device_secret=DeviceSecret(b"\1" * 32),
            receiver_class="kiosk",
            clock=clock,
        )
