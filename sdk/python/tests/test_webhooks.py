"""Verifying webhooks: what is accepted, and the closed set of reasons for which a message is rejected.

The reference library of Standard Webhooks signs what we verify, and verifies what we accept.
"""

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.message import Message
from typing import Any, get_args

import httpx2
import pytest
from soundmark_sdk.webhooks import TOLERANCE, WebhookFailure, WebhookMessage, WebhookRejected, verify
from standardwebhooks.webhooks import Webhook

from .stand_ins import FakeClock

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(32, 64))).decode()
EVENT_ID = "evn_ZXZlbnQtZXhhbXBsZS0xMj"
DATA = {"organization_id": "org_1", "project_id": None, "actor": {"type": "user", "id": "ada"}, "xr_id": "xr_ä"}
BODY = json.dumps(
    {"type": "code.issued", "timestamp": "2026-11-20T10:00:00.000Z", "data": DATA}, ensure_ascii=False
).encode()


def sign(clock: FakeClock, body: bytes = BODY, *, secret: str = SECRET, **changes: str) -> dict[str, str]:
    """Return the headers of a message as the reference library signs it, with `changes` by name."""
    now = clock.now()
    signature = Webhook(secret).sign(EVENT_ID, now.replace(microsecond=0), body.decode())
    headers = {"webhook-id": EVENT_ID, "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": signature}
    return {**headers, **{f"webhook-{name}": value for name, value in changes.items()}}


def failure_of(headers: Any, body: bytes, clock: FakeClock, secret: Any = SECRET) -> WebhookFailure:
    with pytest.raises(WebhookRejected) as rejected:
        verify(headers, body, secret, clock=clock)
    assert rejected.value.failure in get_args(WebhookFailure)
    assert str(rejected.value) == f"{rejected.value.failure}: {rejected.value.explanation}"
    return rejected.value.failure


def test_a_message_that_the_reference_library_signed_is_accepted(clock: FakeClock) -> None:
    message = verify(sign(clock), BODY, SECRET, clock=clock)
    sent_at = clock.now().replace(microsecond=0)
    assert message == WebhookMessage(EVENT_ID, "code.issued", datetime(2026, 11, 20, 10, tzinfo=UTC), sent_at, DATA)


def test_by_default_the_machines_clock_counts() -> None:
    class Now(FakeClock):
        def now(self) -> datetime:
            return datetime.now(UTC)

    assert verify(sign(Now()), BODY, SECRET).id == EVENT_ID


@pytest.mark.parametrize("kind", ["upper case", "email.message", "httpx2"])
def test_headers_are_taken_as_frameworks_have_them(clock: FakeClock, kind: str) -> None:
    signed = sign(clock)
    headers: Any = {name.title(): value for name, value in signed.items()}
    if kind == "email.message":  # http.server
        headers = Message()
        for name, value in signed.items():
            headers[name.upper()] = value
    elif kind == "httpx2":
        headers = httpx2.Headers(signed)
    assert verify(headers, BODY, SECRET, clock=clock).id == EVENT_ID


@pytest.mark.parametrize(("delta_s", "failure"), [(-300, None), (-301, "too_new"), (300, None), (301, "too_old")])
def test_clocks_may_be_five_minutes_apart(clock: FakeClock, delta_s: int, failure: str | None) -> None:
    assert timedelta(minutes=5) == TOLERANCE
    headers = sign(clock)
    sent_at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)

    class Then(FakeClock):
        def now(self) -> datetime:
            return sent_at + timedelta(seconds=delta_s)

    if failure is None:
        assert verify(headers, BODY, SECRET, clock=Then()).sent_at == sent_at
    else:
        assert failure_of(headers, BODY, Then()) == failure


def test_while_a_secret_is_rolled_either_of_the_two_is_enough(clock: FakeClock) -> None:
    old, new = sign(clock), sign(clock, secret=OTHER_SECRET)
    both = {**new, "webhook-signature": f"{new['webhook-signature']} {old['webhook-signature']}"}
    for secret in (SECRET, OTHER_SECRET, [SECRET, OTHER_SECRET]):
        assert verify(both, BODY, secret, clock=clock).id == EVENT_ID
    assert failure_of(new, BODY, clock) == "signature_invalid"
    assert verify(new, BODY, [SECRET, OTHER_SECRET], clock=clock).id == EVENT_ID


def test_signatures_of_other_versions_are_passed_over(clock: FakeClock) -> None:
    right = sign(clock)["webhook-signature"]
    for among in (
        f"v1a,AAAA {right}",
        f"{right} v2,{right[3:]}",
        f"v1,AAAA {right}",
        f"  {right} v1 ,",
        f"ä,ö {right}",
    ):
        assert verify(sign(clock, signature=among), BODY, SECRET, clock=clock).id == EVENT_ID
    for without in (f"v1a,{right[3:]}", f"V1,{right[3:]}", right[3:], f"v1;{right[3:]}", "", "v1,", "v1,ä"):
        assert failure_of(sign(clock, signature=without), BODY, clock) == "signature_invalid"


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-id": "evn_other"},
        {"webhook-timestamp": "+1"},
        {"body": BODY + b" "},
        {"body": b""},
        {"body": BODY.replace(b"issued", b"revoke")},
    ],
)
def test_nothing_signed_can_be_changed(clock: FakeClock, changed: Mapping[str, Any]) -> None:
    headers, body = sign(clock), changed.get("body", BODY)
    for name, value in changed.items():
        if name == "webhook-timestamp":
            headers[name] = str(int(headers[name]) + int(value))
        elif name != "body":
            headers[name] = value
    assert failure_of(headers, body, clock) == "signature_invalid"


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_each_header_is_needed_exactly_once(clock: FakeClock, name: str) -> None:
    headers = sign(clock)
    value = headers.pop(name)
    assert failure_of(headers, BODY, clock) == "header_missing"
    repeated = Message()
    for pair in [*headers.items(), (name, value), (name.upper(), value)]:
        repeated[pair[0]] = pair[1]
    assert failure_of(repeated, BODY, clock) == "header_malformed"


def test_headers_have_one_form(clock: FakeClock, subtests: pytest.Subtests) -> None:
    for name, value in [
        ("id", ""),
        ("id", "evn.1"),
        ("id", "evn 1"),
        ("id", "evn_ä"),
        ("id", "e" * 257),
        *[("timestamp", value) for value in ("", "1.5", "-1", "1e9", "now", "١٢٣", "9" * 12, "nan", "inf")],
        ("signature", "v1,AAAA " * 1000),
    ]:
        with subtests.test(name=name, value=value):
            assert failure_of(sign(clock, **{name: value}), BODY, clock) == "header_malformed"


def test_a_body_that_is_no_message_is_malformed_although_it_is_signed(
    clock: FakeClock, subtests: pytest.Subtests
) -> None:
    for body in [
        b"",
        b"[]",
        b"not json",
        b'{"type":"a","timestamp":"2026-11-20T10:00:00.000Z"}',
        b'{"type":1,"timestamp":"2026-11-20T10:00:00.000Z","data":{}}',
        b'{"type":"a","timestamp":"2026-11-20","data":{}}',
        b'{"type":"a","timestamp":null,"data":{}}',
        b'{"type":"a","timestamp":"2026-11-20T10:00:00.000Z","data":[]}',
        b'{"type":"a","type":"b","timestamp":"2026-11-20T10:00:00.000Z","data":{}}',
    ]:
        with subtests.test(body=body):
            assert failure_of(sign(clock, body), body, clock) == "malformed"


def test_members_of_later_releases_are_passed_over(clock: FakeClock) -> None:
    body = BODY.replace(b"{", b'{"version": 2, ', 1)
    assert verify(sign(clock, body), body, SECRET, clock=clock).data == DATA


def test_a_text_that_is_no_secret_is_a_mistake_of_the_caller(clock: FakeClock, subtests: pytest.Subtests) -> None:
    for secret in [
        "",
        "whsec_",
        SECRET.removeprefix("whsec_"),
        "whsec_" + "A" * 31,
        "whsec_" + "A" * 88,
        "whsec_ä",
        "whsec_AA AA",
        [],
    ]:
        with subtests.test(secret=secret):
            with pytest.raises(ValueError, match=r"secret") as refused:
                verify(sign(clock), BODY, secret, clock=clock)
            assert "AAAA" not in str(refused.value)


@pytest.mark.parametrize("size", [24, 25, 26, 32, 64])
def test_a_secret_has_24_to_64_bytes_in_base64_with_or_without_padding(clock: FakeClock, size: int) -> None:
    secret = "whsec_" + base64.b64encode(bytes(range(size))).decode()
    headers = sign(clock, secret=secret)
    assert verify(headers, BODY, secret, clock=clock).id == EVENT_ID
    assert verify(headers, BODY, secret.rstrip("="), clock=clock).id == EVENT_ID


@pytest.mark.parametrize("encoded", [base64.b64encode(bytes(23)), base64.b64encode(bytes(65)), b"AAAA!!!!" + b"A" * 28])
def test_a_secret_of_another_size_or_alphabet_is_refused(clock: FakeClock, encoded: bytes) -> None:
    with pytest.raises(ValueError, match="24 to 64 bytes"):
        verify(sign(clock), BODY, f"whsec_{encoded.decode()}", clock=clock)


def test_an_id_loses_white_space_alone(clock: FakeClock) -> None:
    now = clock.now()
    headers = sign(clock, signature=Webhook(SECRET).sign("X1X", now.replace(microsecond=0), BODY.decode()))
    assert verify({**headers, "webhook-id": " X1X\t"}, BODY, SECRET, clock=clock).id == "X1X"


def test_signatures_have_4096_characters_together_at_most(clock: FakeClock) -> None:
    right = sign(clock)["webhook-signature"]
    most = f"{right} v2,".ljust(4096, "A")
    assert verify(sign(clock, signature=most), BODY, SECRET, clock=clock).id == EVENT_ID
    assert failure_of(sign(clock, signature=f"{most}A"), BODY, clock) == "header_malformed"


def test_a_signature_that_is_no_text_is_invalid(clock: FakeClock) -> None:
    """Some frameworks decode foreign bytes to lone surrogates."""
    assert failure_of(sign(clock, signature="v1,\udcff"), BODY, clock) == "signature_invalid"


def test_a_text_is_no_body(clock: FakeClock) -> None:
    """A text was decoded and could be encoded differently, so its signature proves nothing."""
    with pytest.raises(TypeError):
        verify(sign(clock), BODY.decode(), SECRET, clock=clock)  # type: ignore[arg-type]  # what is refused
