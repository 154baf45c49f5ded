"""The published vectors are what the server's code produces, and mean what docs/vectors/README.md says."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from soundmark_sdk import ReceiverFailure, read_key_set, verify_answer
from soundmark_sdk.verification import verify_measurement_proof
from vectors import VECTORS, files

from soundmark.core.domain.codes.code import digest_of
from soundmark.core.domain.codes.signed_facts import read_facts
from soundmark.kit.crypto.canonical import NotCanonical, canonicalize
from soundmark.kit.crypto.signing import SigningKey, verifies
from soundmark.kit.http.requests.strict_json import MalformedJson, parse_json
from soundmark.kit.text import base64url

CODES = json.loads((VECTORS / "xr-code-v1.json").read_text(encoding="ascii"))
RESOLUTIONS = json.loads((VECTORS / "resolution-proof-v1.json").read_text(encoding="ascii"))
MEASUREMENTS = json.loads((VECTORS / "measurement-proof-v1.json").read_text(encoding="ascii"))
CANONICAL = json.loads((VECTORS / "canonical-json.json").read_text(encoding="ascii"))


def cases(document: Any, kind: str = "cases") -> Any:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in document[kind]])


def public_keys(document: Any) -> dict[str, bytes]:
    return {key["kid"]: base64url.decode(key["x"]) for key in document["keys"]["keys"]}


@pytest.mark.parametrize("name", sorted(files()))
def test_every_file_is_what_the_server_makes(name: str) -> None:
    """If this fails, the wire format has changed: other implementations verify against these bytes."""
    assert (VECTORS / name).read_text(encoding="ascii") == files()[name], "run .venv/bin/python tests/vectors.py"


@pytest.mark.parametrize("document", [CODES, RESOLUTIONS, MEASUREMENTS], ids=["codes", "resolutions", "measurements"])
def test_every_published_key_is_that_of_its_seed(document: Any) -> None:
    for key_id, seed in document["seeds"].items():
        assert SigningKey.from_seed(key_id, base64url.decode(seed)).public_key == public_keys(document)[key_id]
    assert document["seeds"].keys() == public_keys(document).keys()


@cases(CODES)
def test_a_signed_code_verifies_over_its_canonical_form(case: Any) -> None:
    signed_code = dict(case["signed_code"])
    signature = base64url.decode(signed_code.pop("signature"))
    payload = canonicalize(signed_code, depth_max=33, size_max_bytes=32768)
    assert payload.decode() == case["canonical"]
    assert signed_code["token_digest"] == digest_of(case["token"])
    assert verifies(public_keys(CODES)[signed_code["key_id"]], payload, signature)
    assert read_facts(payload) is not None


@cases(RESOLUTIONS)
def test_an_answers_payload_is_canonical_although_it_is_put_together_by_hand(case: Any) -> None:
    proof = case["answer"]["resolution_proof"]
    payload = base64url.decode(proof["payload"])
    assert canonicalize(json.loads(payload), depth_max=33, size_max_bytes=32768) == payload
    assert payload.decode() == case["canonical"]
    assert verifies(public_keys(RESOLUTIONS)[proof["key_id"]], payload, base64url.decode(proof["signature"]))
    assert json.loads(payload)["token_digest"] == case["token_digest"] == digest_of(case["token"])


@cases(MEASUREMENTS)
def test_a_measurement_proof_verifies_over_its_canonical_form(case: Any) -> None:
    """By our own verification, and by that of the SDK, which shares no code with it."""
    proof = dict(case["proof"])
    signature = base64url.decode(proof.pop("signature"))
    assert canonicalize(proof).decode() == case["canonical"]
    assert verifies(public_keys(MEASUREMENTS)[proof["key_id"]], case["canonical"].encode(), signature)
    keys = read_key_set(json.dumps(MEASUREMENTS["keys"]).encode())
    issued_at, expires_at = (datetime.fromisoformat(proof[name]) for name in ("issued_at", "expires_at"))
    assert verify_measurement_proof(case["proof"], keys, issued_at).proof_id == proof["proof_id"]
    assert expires_at - issued_at == timedelta(minutes=5)


@cases(RESOLUTIONS, "refused")
def test_an_altered_answer_is_refused_by_a_receiver(case: Any) -> None:
    """Core never produces these, so the receiver's code judges them."""
    keys = read_key_set(json.dumps(RESOLUTIONS["keys"]).encode())
    with pytest.raises(ReceiverFailure) as failure:
        verify_answer(json.dumps(case["answer"]).encode(), case["token"], keys, datetime.fromisoformat(case["now"]))
    assert failure.value.reason == "unverifiable"


def test_a_code_used_as_an_envelope_is_refused_for_nothing_but_its_other_members() -> None:
    """Its signature, its times and all members of an envelope are valid: only a closed object tells the two apart."""
    (case,) = [case for case in RESOLUTIONS["refused"] if case["name"] == "a signed Code used as an envelope"]
    proof = case["answer"]["resolution_proof"]
    signed = base64url.decode(proof["payload"])
    assert verifies(public_keys(RESOLUTIONS)[proof["key_id"]], signed, base64url.decode(proof["signature"]))
    envelope = {"version", "xr_id", "intent", "policy", "token_digest", "issued_at", "expires_at", "key_id"}
    payload = canonicalize({name: value for name, value in json.loads(signed).items() if name in envelope})
    key = SigningKey.from_seed(proof["key_id"], base64url.decode(RESOLUTIONS["seeds"][proof["key_id"]]))
    reduced = {**proof, "payload": base64url.encode(payload), "signature": base64url.encode(key.sign(payload))}
    answer = json.dumps({**case["answer"], "resolution_proof": reduced}).encode()
    keys = read_key_set(json.dumps(RESOLUTIONS["keys"]).encode())
    assert verify_answer(answer, case["token"], keys, datetime.fromisoformat(case["now"])).key_id == proof["key_id"]


@cases(CANONICAL, "accepted")
def test_an_accepted_text_has_this_canonical_form(case: Any) -> None:
    canonical = canonicalize(parse_json(case["input"].encode()))
    assert canonical.decode() == case["canonical"]
    assert canonicalize(parse_json(canonical)) == canonical


@cases(CANONICAL, "refused")
def test_a_refused_text_is_refused_under_its_code(case: Any) -> None:
    assert judge(case["input"].encode()) == case["code"]


@cases(CANONICAL, "refused_bytes")
def test_bytes_that_are_not_unicode_are_refused(case: Any) -> None:
    assert judge(bytes.fromhex(case["input_hex"])) == case["code"]


def judge(text: bytes) -> str | None:
    """Return the code of the problem with which Core answers an intent written like this."""
    try:
        canonicalize(parse_json(text))
    except MalformedJson:
        return "malformed_json"
    except NotCanonical:
        return "intent_not_canonical"
    return None
