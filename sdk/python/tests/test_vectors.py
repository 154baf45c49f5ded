"""The published signature vectors: two independent implementations must agree on every byte."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from soundmark_sdk import base64url, read_key_set, verify_answer, verify_signed_code
from soundmark_sdk.clock import SystemClock
from soundmark_sdk.failures import ReceiverFailure
from soundmark_sdk.shapes import canonicalize_intent
from soundmark_sdk.strict_json import canonicalize, parse
from soundmark_sdk.verification import digest_token
from soundmark_sdk.webhooks import WebhookRejected, verify
from standardwebhooks.webhooks import Webhook

from .issuer import Json, compact

VECTORS: Final = Path(__file__).parents[3] / "docs" / "vectors"


def read(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_bytes())


def test_every_signed_code_verifies_over_exactly_the_published_bytes() -> None:
    vectors = read("xr-code-v1")
    keys = read_key_set(compact(vectors["keys"]))
    for case in vectors["cases"]:
        signed_code: Json = case["signed_code"]
        code = verify_signed_code(signed_code, keys, token=case["token"])
        unsigned = {name: value for name, value in signed_code.items() if name != "signature"}
        assert canonicalize(unsigned).decode() == case["canonical"], case["name"]
        assert signed_code["signature"] == case["signature"], case["name"]
        assert code.xr_id == signed_code["xr_id"], case["name"]
    assert vectors["cases"]


def test_every_signed_code_fails_once_any_member_is_altered() -> None:
    vectors = read("xr-code-v1")
    keys = read_key_set(compact(vectors["keys"]))
    for case in vectors["cases"]:
        for name in case["signed_code"]:
            with pytest.raises(ReceiverFailure):
                verify_signed_code({**case["signed_code"], name: "altered"}, keys)


def test_every_resolution_answer_verifies_over_exactly_the_published_bytes() -> None:
    vectors = read("resolution-proof-v1")
    keys = read_key_set(compact(vectors["keys"]))
    for case in vectors["cases"]:
        answer, now = case["answer"], datetime.fromisoformat(case["now"])
        resolution = verify_answer(compact(answer), case["token"], keys, now)
        assert digest_token(case["token"]) == case["token_digest"], case["name"]
        assert base64url.decode(answer["resolution_proof"]["payload"]).decode() == case["canonical"], case["name"]
        assert canonicalize(parse(case["canonical"].encode())).decode() == case["canonical"], case["name"]
        assert resolution.xr_id == answer["xr_id"], case["name"]
    assert vectors["cases"]


def test_every_resolution_answer_fails_for_another_token() -> None:
    vectors = read("resolution-proof-v1")
    keys = read_key_set(compact(vectors["keys"]))
    for case in vectors["cases"]:
        with pytest.raises(ReceiverFailure):
            verify_answer(compact(case["answer"]), "brd_0000000000000000", keys, datetime.fromisoformat(case["now"]))


def test_every_spoilt_answer_is_refused() -> None:
    vectors = read("resolution-proof-v1")
    keys = read_key_set(compact(vectors["keys"]))
    for case in vectors["refused"]:
        with pytest.raises(ReceiverFailure) as failure:
            verify_answer(compact(case["answer"]), case["token"], keys, datetime.fromisoformat(case["now"]))
        assert failure.value.reason == "unverifiable", case["name"]
    assert vectors["refused"]


def test_accepted_json_has_exactly_the_published_canonical_form() -> None:
    accepted = read("canonical-json")["accepted"]
    for case in accepted:
        assert canonicalize_intent(parse(case["input"].encode())).decode() == case["canonical"], case["name"]
    assert accepted


def test_refused_json_is_refused() -> None:
    refused = read("canonical-json")["refused"]
    for case in refused:
        # UTF-8 cannot hold lone surrogates, so these vectors are passed through and refused as bytes.
        text = case["input"].encode("utf-8", "surrogatepass")
        with pytest.raises(ReceiverFailure):
            canonicalize_intent(parse(text))
    assert refused


def test_refused_bytes_are_refused() -> None:
    refused = read("canonical-json")["refused_bytes"]
    for case in refused:
        with pytest.raises(ReceiverFailure):
            canonicalize_intent(parse(bytes.fromhex(case["input_hex"])))
    assert refused


WEBHOOKS = read("webhook-v1")


def receive(message: Any) -> str:
    """Verify a published message at its time; return the type of its event."""

    class Then(SystemClock):
        def now(self) -> datetime:
            return datetime.fromisoformat(message["now"])

    return verify(message["headers"], message["body"].encode(), WEBHOOKS["secret"], clock=Then()).type


def test_every_webhook_message_verifies_as_the_reference_library_signs_it() -> None:
    assert len(WEBHOOKS["accepted"]) == 3
    for message in WEBHOOKS["accepted"]:
        assert receive(message) == "code.issued"
        headers = message["headers"]
        sent_at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
        signature = Webhook(WEBHOOKS["secret"]).sign(headers["webhook-id"], sent_at, message["body"])
        assert signature in headers["webhook-signature"].split(" ")


def test_every_spoilt_webhook_message_is_refused() -> None:
    assert len(WEBHOOKS["refused"]) == 6
    for message in WEBHOOKS["refused"]:
        with pytest.raises(WebhookRejected):
            receive(message)
