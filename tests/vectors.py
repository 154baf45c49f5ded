"""The generator of docs/vectors, by the server's own code: `.venv/bin/python tests/vectors.py` writes the files."""

import base64
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from support.codes.pack_vectors import pack_vectors
from support.codes.vector_inputs import ACCEPTED, INTENTS, MALFORMED, MALFORMED_BYTES, NOT_CANONICAL
from support.log.vectors import log_vectors

from soundmark.core.domain.codes.code import Facts, digest_of, payload_of
from soundmark.core.domain.codes.signed_facts import integration_of, read_facts
from soundmark.core.domain.webhooks.attempt import sign
from soundmark.core.domain.webhooks.endpoint import SECRET_PREFIX
from soundmark.core.domain.webhooks.event import WebhookEvent, render_body
from soundmark.core.edge.examples import CODE, EXAMPLE_KEY, ISSUED_AT
from soundmark.core.features.codes.resolution.wire import verification_key
from soundmark.core.hot.envelope import MEASUREMENT_LIFE, PROOF_LIFE, EnvelopeSigner, answer_body
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.http.requests.strict_json import parse_json
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp

VECTORS: Final = Path(__file__).parents[1] / "docs" / "vectors"

EXAMPLE_SEED: Final = bytes(range(32))
RETIRING_SEED: Final = bytes(range(32, 64))
RETIRING_KEY: Final = SigningKey.from_seed("sig_cmV0aXJpbmcta2V5LWV4YQ", RETIRING_SEED)
_SEEDS: Final = ((EXAMPLE_KEY, EXAMPLE_SEED, "active"), (RETIRING_KEY, RETIRING_SEED, "retiring"))
_TOKEN: Final = "brd_bm9yZGxpY2h0LWV4"
_PROOF_ID: Final = "prf_bWVhc3VyZW1lbnQtcHJvb2"
_ANSWERED_AT: Final = ISSUED_AT + timedelta(hours=1)

Json = dict[str, Any]


def files() -> dict[str, str]:
    """Return the text of every published file, by its name."""
    documents = {
        "xr-code-v1.json": _signed_codes(),
        "resolution-proof-v1.json": _resolutions(),
        "measurement-proof-v1.json": _measurements(),
        "canonical-json.json": _canonical_json(),
        "webhook-v1.json": _webhooks(),
        "transparency-log-v1.json": log_vectors(),
        "offline-pack-v1.json": pack_vectors(_keys()),
    }
    # ASCII only: no editor, font or normalisation can change a vector.
    return {name: json.dumps(document, indent=2) + "\n" for name, document in documents.items()}


class Signed(NamedTuple):
    """The signed bytes of one Code, and the values that they were made from."""

    name: str
    token: str
    key: SigningKey
    payload: bytes


def _codes() -> list[Signed]:
    intent = json.loads(CODE.payload)["intent"]
    campaign_id = "cmp_Y2FtcGFpZ24tZXhhbXBsZS"
    measured = {"audience_integration_id": "int_aW50ZWdyYXRpb24tZXhhbX"}
    soon = ISSUED_AT + timedelta(milliseconds=1)
    return [
        Signed("the example of the API document", _TOKEN, EXAMPLE_KEY, CODE.payload),
        *(
            _code(name, token=f"brd_intent-number-0{number}", intent=intent)
            for number, (name, intent) in enumerate(INTENTS.items())
        ),
        _code("of a campaign, not measured", intent=intent, campaign_id=campaign_id),
        _code("measured", intent=intent, **measured),
        _code("of a campaign, measured", intent=intent, campaign_id=campaign_id, **measured),
        _code("by the longest issuer, for one millisecond", intent=intent, issuer="é" * 160, expires_at=soon),
        _code("signed by a key that is retiring", RETIRING_KEY, intent=intent),
    ]


def _code(name: str, key: SigningKey = EXAMPLE_KEY, *, token: str = _TOKEN, **changes: Any) -> Signed:
    """Return the example Code, except for `changes`."""
    example = CODE
    facts: Json = {
        "organization_id": example.organization_id,
        "project_id": example.project_id,
        "campaign_id": None,
        "issuer": example.issuer,
        "issued_at": example.issued_at,
        "expires_at": example.expires_at,
        "audience_integration_id": None,
        "key_id": key.key_id,
    }
    intent = canonicalize(changes.pop("intent"))
    head = Facts(**(facts | changes), intent=intent).head()
    return Signed(name, token, key, payload_of(head, xr_id=example.xr_id, broadcast_token=token))


def _signed_codes() -> Json:
    return {
        "description": "Signed Codes (xr-code-v1). `signature` is Ed25519 over the UTF-8 bytes of `canonical`, which "
        "is the RFC 8785 form of `signed_code` without `signature`; `token_digest` is SHA-256 of `token`.",
        **_keys(),
        "cases": [_signed_code(code) for code in _codes()],
    }


def _signed_code(code: Signed) -> Json:
    signature = base64url.encode(code.key.sign(code.payload))
    return {
        "name": code.name,
        "token": code.token,
        "signed_code": {**json.loads(code.payload), "signature": signature},
        "canonical": code.payload.decode(),
        "signature": signature,
    }


def _keys() -> Json:
    published = [verification_key(key.key_id, key.public_key, status) for key, _, status in _SEEDS]
    return {
        "seeds": {key.key_id: base64url.encode(seed) for key, seed, _ in _SEEDS},
        "keys": {"keys": [key.model_dump(mode="json") for key in published]},
    }


def _resolutions() -> Json:
    codes = _codes()
    cases = [_resolution(code) for code in codes if _is_answered(code)]
    cases += [
        _resolution(codes[0], "by a clock that is two minutes behind", now=_ANSWERED_AT - timedelta(minutes=2)),
        _resolution(
            codes[0],
            "by a clock that is almost two minutes ahead, at the end of its life",
            now=_ANSWERED_AT + timedelta(minutes=4, milliseconds=-1),
        ),
    ]
    return {
        "description": "Answers to `GET /v1/resolve/{token}` with `X-Svc-Resolution-Proof: ed25519-v1`. `canonical` is "
        "the payload that the envelope's signature covers; `cases` verify for `token` at `now`, `refused` must not.",
        **_keys(),
        "cases": cases,
        "refused": _refused_resolutions(),
    }


def _is_answered(code: Signed) -> bool:
    return str(json.loads(code.payload)["expires_at"]) > format_timestamp(_ANSWERED_AT)


def _resolution(code: Signed, name: str | None = None, *, now: datetime = _ANSWERED_AT) -> Json:
    facts = read_facts(code.payload)
    assert facts is not None, "a vector is a signed Code"
    # The active key signs the answer, whichever key signed the Code.
    seal, integration_id = EnvelopeSigner(EXAMPLE_KEY, _ANSWERED_AT), integration_of(facts)
    measurement = None if integration_id is None else seal.measurement(facts, integration_id, _PROOF_ID)
    answer = json.loads(answer_body(facts, seal.envelope(facts, measurement), measurement))
    return {
        "name": name or code.name,
        "token": code.token,
        "token_digest": digest_of(code.token),
        "now": format_timestamp(now),
        "answer": answer,
        "canonical": base64url.decode(answer["resolution_proof"]["payload"]).decode(),
    }


def _refused_resolutions() -> list[Json]:
    """Return one genuine answer, altered in one way each."""
    genuine = _resolution(_codes()[0])
    answer, proof = genuine["answer"], genuine["answer"]["resolution_proof"]
    payload = json.loads(genuine["canonical"])
    retiring_id = RETIRING_KEY.key_id
    long_life = format_timestamp(_ANSWERED_AT + PROOF_LIFE + timedelta(milliseconds=1))
    spoilt: dict[str, Json] = {
        "heard another token": {"token": "brd_0000000000000000"},
        "two minutes after its end": {"now": format_timestamp(_ANSWERED_AT + timedelta(minutes=4))},
        "more than two minutes before its beginning": {
            "now": format_timestamp(_ANSWERED_AT - timedelta(minutes=2, milliseconds=1))
        },
        "no envelope": {"answer": {name: answer[name] for name in answer if name != "resolution_proof"}},
        "an outer intent that was not signed": {"answer": {**answer, "intent": {**answer["intent"], "action": "buy"}}},
        "another outer xr_id": {"answer": {**answer, "xr_id": "xr_0000000000000000000000"}},
        "an unknown member": {"answer": {**answer, "note": "hello"}},
        "not claimed to be verified": {"answer": {**answer, "signature_status": "unverified"}},
        "a signature of 64 zero bytes": _with_proof(answer, {**proof, "signature": "A" * 86}),
        "padded base64url": _with_proof(answer, {**proof, "signature": proof["signature"] + "=="}),
        "signed by another published key than it names": _with_proof(answer, _envelope(payload, RETIRING_KEY)),
        "a key id that nobody published": _with_proof(answer, _envelope({**payload, "key_id": "sig_unknown"})),
        "an envelope that names another key than its payload": _with_proof(answer, {**proof, "key_id": retiring_id}),
        "an envelope of another end than its payload": _with_proof(answer, {**proof, "expires_at": long_life}),
        "signed for longer than two minutes": _with_proof(answer, _envelope({**payload, "expires_at": long_life})),
        "signed, but of version 2": _with_proof(answer, _envelope({**payload, "version": 2})),
        "signed, but with a member that nobody knows": _with_proof(answer, _envelope({**payload, "note": "hello"})),
        "signed, but not in canonical form": _with_proof(
            answer, _envelope(payload, signed=json.dumps(payload).encode())
        ),
    }
    spoilt |= {"a signed Code used as an envelope": _code_as_envelope()}
    spoilt |= _refused_measured()
    kept = {name: genuine[name] for name in ("token", "now", "answer")}
    return [{"name": name, **kept, **change} for name, change in spoilt.items()]


def _code_as_envelope() -> Json:
    """Return the bytes that Core signed for a Code, in place of a payload: every member of a payload, and others.

    The Code lives for two minutes, so that even its times do not give it away.
    """
    intent = json.loads(CODE.payload)["intent"]
    expires_at = _ANSWERED_AT + PROOF_LIFE
    code = _code("of two minutes", intent=intent, issued_at=_ANSWERED_AT, expires_at=expires_at)
    payload = json.loads(code.payload)
    assert payload.keys() > {
        "version",
        "xr_id",
        "intent",
        "policy",
        "token_digest",
        "issued_at",
        "expires_at",
        "key_id",
    }
    outer = {name: payload[name] for name in ("xr_id", "intent", "policy")}
    return _with_proof({**outer, "signature_status": "verified"}, _envelope(payload, signed=code.payload))


def _measurements() -> Json:
    measured = [case for code in _codes() if "measurement_proof" in (case := _resolution(code))["answer"]]
    return {
        "description": "Measurement proofs. `signature` is Ed25519 over the UTF-8 bytes of `canonical`, which is the "
        "RFC 8785 form of `proof` without `signature`. They hold from `issued_at` to `expires_at`, five minutes.",
        **_keys(),
        "cases": [_measurement(case["name"], case["answer"]["measurement_proof"]) for case in measured],
    }


def _measurement(name: str, proof: Json) -> Json:
    unsigned = {member: value for member, value in proof.items() if member != "signature"}
    signed = canonicalize(unsigned).decode()
    return {"name": name, "proof": proof, "canonical": signed, "signature": proof["signature"]}


def _refused_measured() -> dict[str, Json]:
    """Return the answer for a measured Code with altered measurement members, and the envelope signed again."""
    genuine = next(_resolution(code) for code in _codes() if code.name == "of a campaign, measured")
    payload = json.loads(genuine["canonical"])
    proof = payload["measurement_proof"]
    unsigned = {member: value for member, value in proof.items() if member != "signature"}
    late = format_timestamp(_ANSWERED_AT + MEASUREMENT_LIFE + timedelta(milliseconds=1))

    def signed(**changes: Any) -> Json:
        changed = {**unsigned, **changes}
        return {**changed, "signature": base64url.encode(EXAMPLE_KEY.sign(canonicalize(changed)))}

    def answered(measurement: Json | None) -> Json:
        members = {"measurement_proof": measurement} if measurement is not None else {}
        kept = {name: value for name, value in payload.items() if name != "measurement_proof"}
        outer = {name: value for name, value in genuine["answer"].items() if name != "measurement_proof"}
        return _with_proof({**outer, **members}, _envelope({**kept, **members})) | {"token": genuine["token"]}

    return {
        "measured, but without a measurement proof": answered(None),
        "a measurement proof of another Code": answered(signed(xr_id="xr_0000000000000000000000")),
        "a measurement proof of another integration": answered(signed(integration_id="int_0000000000000000000000")),
        "a measurement proof of a campaign that was not signed": answered({**proof, "campaign_id": None}),
        "a measurement proof of an id that was not signed": answered({**proof, "proof_id": "prf_0000000000000000"}),
        "a measurement proof of more than five minutes": answered(signed(expires_at=late)),
        "a measurement proof with a member that nobody knows": answered(signed(note="hello")),
        "an outer measurement proof that is not the signed one": _with_proof(
            {**genuine["answer"], "measurement_proof": signed(proof_id="prf_0000000000000000")},
            genuine["answer"]["resolution_proof"],
        )
        | {"token": genuine["token"]},
    }


def _with_proof(answer: Json, proof: Json) -> Json:
    return {"answer": {**answer, "resolution_proof": proof}}


def _envelope(payload: Json, key: SigningKey = EXAMPLE_KEY, *, signed: bytes | None = None) -> Json:
    """Return an envelope around any payload, as Core itself would never make it."""
    data = canonicalize(payload) if signed is None else signed
    mirrored = {name: payload[name] for name in ("version", "key_id", "issued_at", "expires_at")}
    return {**mirrored, "payload": base64url.encode(data), "signature": base64url.encode(key.sign(data))}


def _canonical_json() -> Json:
    return {
        "description": "JSON texts and their RFC 8785 form, or the problem code with which Core refuses them in an "
        "intent. `input_hex` are the bytes of texts that are no Unicode.",
        "accepted": [
            {"name": name, "input": text, "canonical": canonicalize(parse_json(text.encode())).decode()}
            for name, text in ACCEPTED.items()
        ],
        "refused": [
            {"name": name, "input": text, "code": code}
            for code, texts in (("malformed_json", MALFORMED), ("intent_not_canonical", NOT_CANONICAL))
            for name, text in texts.items()
        ],
        "refused_bytes": [
            {"name": name, "input_hex": text, "code": "malformed_json"} for name, text in MALFORMED_BYTES.items()
        ],
    }


def _webhooks() -> Json:
    secret, new_secret = (_webhook_secret(bytes(range(first, first + 32))) for first in (0, 32))
    issued = WebhookEvent(
        organization_id="org_b3JnYW5pemF0aW9uLWV4YW",
        id="evn_ZXZlbnQtZXhhbXBsZS0xMj",
        project_id="prj_cHJvamVjdC1leGFtcGxlLT",
        type="code.issued",
        actor_type="user",
        actor_id="ärger@例え",
        data=json.dumps({"xr_id": "xr_Y29kZS1leGFtcGxlLTEyMz"}),
        created_at=ISSUED_AT,
    )
    sent_at = ISSUED_AT + timedelta(seconds=5)
    message = _message("one secret", issued, [secret], sent_at)
    rotated = _message("while the secret is rotated", issued, [new_secret, secret], sent_at)
    other = _message("signed by another secret", issued, [new_secret], sent_at)
    return {
        "description": "Messages to webhook endpoints, signed after Standard Webhooks 1.1.0. `body` is text in UTF-8.",
        "secret": secret.reveal(),
        "tolerance_s": 300,
        "accepted": [message, rotated, {**message, "name": "five minutes late", "now": _later(sent_at, 300)}],
        "refused": [
            {**message, "name": "more than five minutes late", "now": _later(sent_at, 301)},
            {**message, "name": "more than five minutes early", "now": _later(sent_at, -301)},
            {**message, "name": "another body", "body": message["body"] + " "},
            {**message, "name": "another id", "headers": {**message["headers"], "webhook-id": "evn_other"}},
            {**message, "name": "no signature", "headers": {**message["headers"], "webhook-signature": ""}},
            other,
        ],
    }


def _webhook_secret(key: bytes) -> Secret:
    return Secret(SECRET_PREFIX + base64.b64encode(key).decode())


def _message(name: str, event: WebhookEvent, secrets: list[Secret], sent_at: datetime) -> Json:
    body, unix_s = render_body(event), int(sent_at.timestamp())
    headers = {
        "webhook-id": event.id,
        "webhook-timestamp": str(unix_s),
        "webhook-signature": sign(secrets, event.id, unix_s, body),
    }
    return {"name": name, "now": _later(sent_at, 0), "headers": headers, "body": body.decode()}


def _later(time: datetime, seconds: int) -> str:
    return format_timestamp(time + timedelta(seconds=seconds))


if __name__ == "__main__":
    for name, text in files().items():
        (VECTORS / name).write_text(text, encoding="ascii")
