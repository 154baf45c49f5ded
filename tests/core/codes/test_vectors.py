"""The published vectors are what the server's code produces, and mean what docs/vectors/README.md says."""

import json
from datetime import datetime, timedelta
from typing import Any

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


def public_keys(document: Any) -> dict[str, bytes]:
    return {key["kid"]: base64url.decode(key["x"]) for key in document["keys"]["keys"]}


def test_every_file_is_what_the_server_makes() -> None:
    """If this fails, the wire format has changed: other implementations verify against these bytes."""
    made = files()
    stored = {name: (VECTORS / name).read_text(encoding="ascii") for name in made}
    assert stored == made, "run .venv/bin/python tests/vectors.py"


def test_every_published_key_is_that_of_its_seed() -> None:
    for document in (CODES, RESOLUTIONS, MEASUREMENTS):
        seeds = {name: SigningKey.from_seed(name, base64url.decode(seed)) for name, seed in document["seeds"].items()}
        assert {name: key.public_key for name, key in seeds.items()} == public_keys(document)


def test_a_signed_code_verifies_over_its_canonical_form() -> None:
    for case in CODES["cases"]:
        signed_code = dict(case["signed_code"])
        signature = base64url.decode(signed_code.pop("signature"))
        payload = canonicalize(signed_code, depth_max=33, size_max_bytes=32768)
        assert payload.decode() == case["canonical"], case["name"]
        assert signed_code["token_digest"] == digest_of(case["token"]), case["name"]
        assert verifies(public_keys(CODES)[signed_code["key_id"]], payload, signature), case["name"]
        assert read_facts(payload) is not None, case["name"]


def test_an_answers_payload_is_canonical_although_it_is_put_together_by_hand() -> None:
    for case in RESOLUTIONS["cases"]:
        proof = case["answer"]["resolution_proof"]
        payload = base64url.decode(proof["payload"])
        assert canonicalize(json.loads(payload), depth_max=33, size_max_bytes=32768) == payload, case["name"]
        assert payload.decode() == case["canonical"], case["name"]
        key = public_keys(RESOLUTIONS)[proof["key_id"]]
        assert verifies(key, payload, base64url.decode(proof["signature"])), case["name"]
        assert json.loads(payload)["token_digest"] == case["token_digest"] == digest_of(case["token"]), case["name"]


def test_a_measurement_proof_verifies_over_its_canonical_form() -> None:
    """By our own verification, and by that of the SDK, which shares no code with it."""
    keys = read_key_set(json.dumps(MEASUREMENTS["keys"]).encode())
    for case in MEASUREMENTS["cases"]:
        proof = dict(case["proof"])
        signature = base64url.decode(proof.pop("signature"))
        assert canonicalize(proof).decode() == case["canonical"], case["name"]
        assert verifies(public_keys(MEASUREMENTS)[proof["key_id"]], case["canonical"].encode(), signature), case["name"]
        issued_at, expires_at = (datetime.fromisoformat(proof[name]) for name in ("issued_at", "expires_at"))
        assert verify_measurement_proof(case["proof"], keys, issued_at).proof_id == proof["proof_id"]
        assert expires_at - issued_at == timedelta(minutes=5)


def test_an_altered_answer_is_refused_by_a_receiver() -> None:
    """Core never produces these, so the receiver's code judges them."""
    keys = read_key_set(json.dumps(RESOLUTIONS["keys"]).encode())
    reasons = {}
    for case in RESOLUTIONS["refused"]:
        answer, now = json.dumps(case["answer"]).encode(), datetime.fromisoformat(case["now"])
        try:
            verify_answer(answer, case["token"], keys, now)
        except ReceiverFailure as failure:
            reasons[case["name"]] = failure.reason
    assert reasons == {case["name"]: "unverifiable" for case in RESOLUTIONS["refused"]}


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


def test_an_accepted_text_has_this_canonical_form() -> None:
    for case in CANONICAL["accepted"]:
        canonical = canonicalize(parse_json(case["input"].encode()))
        assert canonical.decode() == case["canonical"], case["name"]
        assert canonicalize(parse_json(canonical)) == canonical, case["name"]


def test_a_refused_text_is_refused_under_its_code() -> None:
    texts = {case["name"]: case["input"].encode() for case in CANONICAL["refused"]}
    texts |= {case["name"]: bytes.fromhex(case["input_hex"]) for case in CANONICAL["refused_bytes"]}
    expected = {case["name"]: case["code"] for case in (*CANONICAL["refused"], *CANONICAL["refused_bytes"])}
    assert {name: judge(text) for name, text in texts.items()} == expected


def judge(text: bytes) -> str | None:
    """Return the code of the problem with which Core answers an intent written like this."""
    try:
        canonicalize(parse_json(text))
    except MalformedJson:
        return "malformed_json"
    except NotCanonical:
        return "intent_not_canonical"
    return None
