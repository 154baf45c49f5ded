"""A proof from Core: it holds for one Code, one integration, a limited time, and a trusted key."""

from datetime import timedelta
from typing import Any

import pytest
import rfc8785
from support.audience.client import AudienceApi
from support.audience.event_publisher import (
    CORE,
    NEXT_CORE,
    STRANGER,
    Publisher,
    core_key_body,
    cut_ingestion_connection,
    make_publisher,
    new_id,
    sign_proof,
)
from support.database.rival import Rival

from soundmark.audience.hot.event import Event, parse_body, read_event
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp

MS = timedelta(milliseconds=1)
GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493  # L of Ed25519 (RFC 8032, section 5.1).


async def invalid(source: Publisher, event: dict[str, Any]) -> None:
    answer = await source.deliver(event)
    assert (answer.status, answer.json["code"]) == (422, "proof_invalid"), answer.body


async def recorded(source: Publisher, event: dict[str, Any]) -> None:
    answer = await source.deliver(event)
    assert answer.status == 201, answer.body


@pytest.mark.parametrize("name", ["proof_id", "xr_id", "integration_id", "campaign_id", "issued_at", "expires_at"])
async def test_a_proof_altered_in_one_member_does_not_hold(audience: AudienceApi, name: str) -> None:
    source = await make_publisher(audience)
    other = await make_publisher(audience)
    altered = {
        "proof_id": new_id("prf_"),
        "xr_id": new_id("xr_"),
        "integration_id": other.integration.id,
        "campaign_id": new_id("cmp_"),
        "issued_at": format_timestamp(source.now() - timedelta(seconds=1)),
        "expires_at": format_timestamp(source.now() + timedelta(minutes=4)),
    }

    await invalid(source, source.event(proof={**source.proof(), name: altered[name]}))


async def test_the_id_of_a_key_may_hold_any_characters(audience: AudienceApi) -> None:
    """Those of Core are ASCII, but the signed text is canonical JSON, which escapes no letter of any language."""
    key = SigningKey.from_seed('sig_über "広播"', bytes(range(10, 42)))
    source = await make_publisher(audience, core_key=core_key_body(key))
    source.key = key

    await recorded(source, source.event())


async def test_a_proof_without_the_id_that_was_signed_does_not_hold(audience: AudienceApi) -> None:
    source = await make_publisher(audience)
    proof = source.proof()
    del proof["proof_id"]

    await invalid(source, source.event(proof=proof))


@pytest.mark.parametrize("change", [lambda text: text[:-2] + ("AA" if text[-2:] != "AA" else "QA"), lambda _: "A" * 86])
async def test_an_altered_signature_does_not_hold(audience: AudienceApi, change: Any) -> None:
    source = await make_publisher(audience)
    proof = source.proof()

    await invalid(source, source.event(proof={**proof, "signature": change(proof["signature"])}))


@pytest.mark.parametrize("chars_count", [43, 85, 87, 128])
async def test_a_signature_of_another_length_does_not_hold(audience: AudienceApi, chars_count: int) -> None:
    source = await make_publisher(audience)
    proof = source.proof()

    await invalid(source, source.event(proof={**proof, "signature": (proof["signature"] * 2)[:chars_count]}))


async def test_a_signature_has_one_form(audience: AudienceApi) -> None:
    """S and S + L both verify unless somebody checks; a spent proof would then have a second life."""
    source = await make_publisher(audience)
    proof = source.proof()
    await recorded(source, source.event(proof=proof))
    raw = base64url.decode(proof["signature"])
    malleable = (int.from_bytes(raw[32:], "little") + GROUP_ORDER).to_bytes(32, "little")

    await invalid(source, source.event(proof={**proof, "signature": base64url.encode(raw[:32] + malleable)}))


@pytest.mark.parametrize("name", ["issued_at", "expires_at"])
@pytest.mark.parametrize(
    "respelled", [lambda text: text[:-1] + "+00:00", lambda text: text.lower(), lambda text: text[:-1] + "000Z"]
)
async def test_a_time_is_signed_as_it_is_spelled(audience: AudienceApi, name: str, respelled: Any) -> None:
    """The same time in another spelling is another proof; otherwise a proof could be spent twice."""
    source = await make_publisher(audience)
    proof = source.proof()

    await invalid(source, source.event(proof={**proof, name: respelled(proof[name])}))


async def test_a_signature_of_something_else_is_not_a_proof(audience: AudienceApi) -> None:
    """Core signs Codes and envelopes with the same key."""
    source = await make_publisher(audience)
    proof = source.proof()
    facts = {name: value for name, value in proof.items() if name != "signature"}
    code = {"version": 1, "xr_id": source.xr_id, "key_id": CORE.key_id, "issued_at": facts["issued_at"]}
    for other in (code, {**facts, "version": 1}, {**facts, "intent": {}}, [facts]):
        signature = base64url.encode(CORE.sign(rfc8785.dumps(other)))
        await invalid(source, source.event(proof={**proof, "signature": signature}))


async def test_a_proof_by_another_key_does_not_hold(audience: AudienceApi) -> None:
    source = await make_publisher(audience)

    await invalid(source, source.event(proof=source.proof(key=STRANGER)))
    await invalid(source, source.event(proof=source.proof(key=STRANGER, key_id=CORE.key_id)))
    await invalid(source, source.event(proof=source.proof(key_id=CORE.key_id + "x")))


async def test_a_signature_of_core_for_another_purpose_is_not_a_proof(audience: AudienceApi) -> None:
    """A Code and the payload of an answer are signed with the same key, and both are public."""
    source = await make_publisher(audience)
    proof = source.proof()
    facts = {name: proof[name] for name in ("xr_id", "issued_at", "expires_at", "key_id")}
    of_answer = {"version": 1, "intent": {}, "policy": {}, "token_digest": "A" * 43, **facts}
    of_code = {**of_answer, "organization_id": new_id("org_"), "campaign_id": None, "issuer": "Radio Nordlicht"}

    for other in (of_answer, of_code):
        signed = sign_proof(CORE, other)
        await invalid(source, source.event(proof={**proof, "signature": signed["signature"]}))
        refused = await source.deliver(source.event(proof=signed))
        assert refused.status == 422, refused.body


async def test_a_signature_of_a_proof_has_one_spelling(audience: AudienceApi) -> None:
    """A scalar beyond the group's order would satisfy the same equation, and count as another proof."""
    source = await make_publisher(audience)
    proof = source.proof()
    signature = base64url.decode(proof["signature"])
    scalar = int.from_bytes(signature[32:], "little") + 2**252 + 27742317777372353535851937790883648493
    stretched = base64url.encode(signature[:32] + scalar.to_bytes(32, "little"))

    await invalid(source, source.event(proof={**proof, "signature": stretched}))
    await recorded(source, source.event(proof=proof))


async def test_a_proof_of_another_code_does_not_hold(audience: AudienceApi) -> None:
    source = await make_publisher(audience)

    await invalid(source, source.event(proof=source.proof(xr_id=new_id("xr_"))))


async def test_a_proof_of_another_integration_does_not_hold(audience: AudienceApi) -> None:
    """Neither one of the same project nor one of another tenant, under the same key of Core."""
    source = await make_publisher(audience)
    neighbour = await make_publisher(audience)
    foreign = await make_publisher(
        audience, organization_id="org_YW5vdGhlci1yYWRpby1leG", project_id="prj_YW5vdGhlci1zaG93LWV4YW"
    )

    for other in (neighbour, foreign):
        await invalid(source, source.event(proof=source.proof(integration_id=other.integration.id)))


async def test_an_event_of_another_integration_with_its_proof_is_refused(audience: AudienceApi) -> None:
    source, other = await make_publisher(audience), await make_publisher(audience)

    answer = await source.deliver(other.event())

    assert answer.status == 401


@pytest.mark.parametrize(
    ("life", "holds"),
    [
        (timedelta(minutes=5), True),
        (timedelta(minutes=5) + MS, False),
        (MS, True),
        (timedelta(0), False),
        (timedelta(minutes=-1), False),
        (timedelta(days=365), False),
    ],
)
async def test_a_proof_lives_for_five_minutes_at_most(audience: AudienceApi, life: timedelta, *, holds: bool) -> None:
    source = await make_publisher(audience)
    now = audience.clock.freeze()
    event = source.event(proof=source.proof(expires_at=format_timestamp(now + life)))

    await (recorded if holds else invalid)(source, event)


@pytest.mark.parametrize(
    ("ahead", "holds"), [(timedelta(minutes=2), True), (timedelta(minutes=2) + MS, False), (timedelta(days=1), False)]
)
async def test_a_proof_may_come_from_two_minutes_ahead(audience: AudienceApi, ahead: timedelta, *, holds: bool) -> None:
    source = await make_publisher(audience)
    issued_at = audience.clock.freeze() + ahead
    proof = source.proof(
        issued_at=format_timestamp(issued_at), expires_at=format_timestamp(issued_at + timedelta(minutes=5))
    )

    await (recorded if holds else invalid)(source, source.event(proof=proof))


@pytest.mark.parametrize(
    ("after_issue", "holds"),
    [
        (timedelta(minutes=-2), True),
        (timedelta(minutes=-2) - MS, False),
        (timedelta(0), True),
        (timedelta(minutes=7), True),
        (timedelta(minutes=7) + MS, False),
        (timedelta(days=1), False),
    ],
)
async def test_an_event_happens_while_its_proof_lives_give_or_take_two_minutes(
    audience: AudienceApi, after_issue: timedelta, *, holds: bool
) -> None:
    """Judged much later, so that only the window decides."""
    source = await make_publisher(audience)
    now = audience.clock.freeze()
    event = source.event(occurred_at=format_timestamp(now + after_issue))
    audience.clock.advance(days=2)

    await (recorded if holds else invalid)(source, event)


@pytest.mark.parametrize(("ahead", "holds"), [(timedelta(minutes=2), True), (timedelta(minutes=2) + MS, False)])
async def test_an_event_is_not_postdated(audience: AudienceApi, ahead: timedelta, *, holds: bool) -> None:
    """It lies in its proof's window, but cannot have happened yet."""
    source = await make_publisher(audience)
    now = audience.clock.freeze()

    await (recorded if holds else invalid)(source, source.event(occurred_at=format_timestamp(now + ahead)))


async def test_the_previous_key_is_trusted_for_seven_minutes(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    audience.clock.freeze()
    events = [source.event() for _ in range(2)]
    await source.integration.change("core-key", core_key_body(NEXT_CORE))

    audience.clock.advance(minutes=7, milliseconds=-1)
    await recorded(source, events[0])
    await recorded(source, source.event(proof=source.proof(key=NEXT_CORE)))
    audience.clock.advance(milliseconds=1)
    await invalid(source, events[1])
    await recorded(source, source.event(proof=source.proof(key=NEXT_CORE)))

    assert await audience_rival.rows("SELECT count(*) FROM events") == [(3,)]


async def test_an_older_key_than_the_previous_one_is_not_trusted(audience: AudienceApi) -> None:
    source = await make_publisher(audience)
    event = source.event()
    await source.integration.change("core-key", core_key_body(NEXT_CORE))
    await source.integration.change("core-key", core_key_body(STRANGER))

    await invalid(source, event)
    await recorded(source, source.event(proof=source.proof(key=NEXT_CORE)))
    await recorded(source, source.event(proof=source.proof(key=STRANGER)))


async def test_another_integrations_key_is_not_trusted(audience: AudienceApi) -> None:
    source = await make_publisher(audience)
    await make_publisher(audience, core_key=core_key_body(NEXT_CORE))

    await invalid(source, source.event(proof=source.proof(key=NEXT_CORE)))


@pytest.mark.parametrize(("after", "holds"), [(timedelta(minutes=5) - MS, True), (timedelta(minutes=5), False)])
async def test_a_proof_without_an_id_is_accepted_for_five_minutes_after_the_migration(
    audience: AudienceApi, audience_rival: Rival, after: timedelta, *, holds: bool
) -> None:
    source = await make_publisher(audience)
    now = audience.clock.freeze()
    [(before,)] = await audience_rival.rows("SELECT began_at FROM proof_transition")
    await audience_rival.run("UPDATE proof_transition SET began_at = %s", now - after)
    # Read once for each connection: a process that has run for five minutes still knows it.
    await cut_ingestion_connection(audience_rival)
    try:
        await (recorded if holds else invalid)(source, source.event(proof=source.proof(without="proof_id")))
    finally:
        await audience_rival.run("UPDATE proof_transition SET began_at = %s", before)
        await cut_ingestion_connection(audience_rival)


def test_the_canonical_form_is_verified(subtests: pytest.Subtests) -> None:
    """The server builds the bytes itself; the library defines what they must be."""
    for name, campaign_id in {
        "without a campaign": None,
        "of a campaign": new_id("cmp_"),
    }.items():
        for without in ["", "proof_id"]:
            with subtests.test(name, without=without):
                facts = {
                    "proof_id": new_id("prf_"),
                    "xr_id": new_id("xr_"),
                    "integration_id": new_id("int_"),
                    "campaign_id": campaign_id,
                    "issued_at": "2026-11-20T10:00:00.000Z",
                    "expires_at": "2026-11-20T10:05:00.000Z",
                    "key_id": CORE.key_id,
                }
                facts.pop(without, None)
                event = {
                    "event_id": new_id("evt_"),
                    "integration_id": facts["integration_id"],
                    "xr_id": facts["xr_id"],
                    "occurred_at": "2026-11-20T10:00:00.000Z",
                    "receiver_class": "phone",
                    "measurement_token": new_id("mt_", 32),
                    "proof": sign_proof(CORE, facts),
                }

                read = read_event(parse_body(rfc8785.dumps(event)))

                assert isinstance(read, Event)
                assert read.proof.canonical(rfc8785.dumps(CORE.key_id)) == rfc8785.dumps(facts)
