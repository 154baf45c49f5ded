"""The published vectors of offline packs: genuine ones, spoilt ones, and what receivers answer from them and when."""

import hashlib
import json
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from soundmark.core.domain.codes.offline_pack import PackRecord
from soundmark.core.domain.codes.signed_facts import SignedFacts, read_facts
from soundmark.core.domain.log.entry import digest
from soundmark.core.edge.examples import CODE, EXAMPLE_KEY, ISSUED_AT
from soundmark.core.features.codes.offline_packs.pack import write_pack
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp
from support.log.vectors import prove_document

Json = dict[str, Any]

_AT: Final = ISSUED_AT + timedelta(days=1)
_LIFE: Final = timedelta(hours=6)
_TOKENS: Final = tuple(f"brd_cGFja2VkLWNvZGU{number}" for number in (0, 1, 2))
_CAMPAIGN, _OTHER_CAMPAIGN = "cmp_YXV0dW1uLWNhbXBhaWduLT", "cmp_c3ByaW5nLWNhbXBhaWduLT"
_MS: Final = timedelta(milliseconds=1)


def pack_vectors(keys: Json) -> Json:
    """Return the document of docs/vectors; `keys` are the members that tell the keys."""
    packs = _packs()
    return {
        "description": "Offline packs. Each of `packs` verifies with `keys`, and the transparency log knows it by "
        "one of `digests`. `proofs` are proofs of the pack `campaign`. Each of `refused` is a text that does not "
        "verify. Each of `lookups` says what a receiver that knows these packs answers for a token, at a time.",
        **keys,
        "packs": packs,
        "digests": {
            name: base64url.encode(digest("document.sealed", "document", canonicalize(pack)))
            for name, pack in packs.items()
        },
        "proofs": prove_document(canonicalize(packs["campaign"])),
        "refused": [{"name": name, "text": text} for name, text in _refused(packs["campaign"]).items()],
        "lookups": _lookups(packs),
    }


def _facts(number: int, *, expires_at: datetime = _AT + timedelta(days=9)) -> SignedFacts:
    facts = read_facts(CODE.payload)
    assert facts is not None, "the example Code is signed"
    token_digest = base64url.encode(hashlib.sha256(_TOKENS[number].encode()).digest())
    xr_id, expiry = f"xr_cGFja2VkLWNvZGUtMDAwMD{number}", format_timestamp(expires_at)
    return msgspec.structs.replace(facts, xr_id=xr_id, token_digest=token_digest, expires_at=expiry)


def _pack(
    number: int, *codes: SignedFacts, campaign: str | None = _CAMPAIGN, after: timedelta = timedelta(0), **options: Any
) -> Json:
    at = _AT + after
    project = options.get("project", CODE.project_id)
    record = PackRecord(f"opk_dmVjdG9yLXBhY2stMDAwM{number}", project, campaign, at, at + options.get("life", _LIFE))
    pack: Json = json.loads(write_pack(EXAMPLE_KEY, record, codes)[0])
    return pack


def _packs() -> dict[str, Json]:
    later = timedelta(hours=1)
    return {
        "campaign": _pack(0, _facts(0), _facts(1, expires_at=_AT + timedelta(hours=2))),
        "newer, without the first Code": _pack(1, _facts(1), after=later),
        "newer, of the project, empty": _pack(2, campaign=None, after=later),
        "newer, of another campaign, empty": _pack(3, campaign=_OTHER_CAMPAIGN, after=later),
        "newer, of another project, empty": _pack(4, campaign=None, after=later, project="prj_c29tZWJvZHktZWxzZXMtLT"),
        "newer, with the first Code": _pack(5, _facts(0), after=later),
        "newer, empty, of five minutes": _pack(6, after=later, life=timedelta(minutes=5)),
        "of 24 hours": _pack(7, _facts(0), life=timedelta(hours=24)),
    }


def _refused(pack: Json) -> dict[str, str]:
    def signed(**changes: Any) -> Json:
        changed = {
            name: value for name, value in {**pack, **changes}.items() if name != "signature" and value is not ...
        }
        return {**changed, "signature": base64url.encode(EXAMPLE_KEY.sign(canonicalize(changed, depth_max=64)))}

    first, second = pack["codes"]
    other = SigningKey.from_seed("sig_c29tZWJvZHktZWxzZQ", bytes([104]) * 32)
    unsigned = {name: value for name, value in pack.items() if name != "signature"}
    by_other = {**pack, "signature": base64url.encode(other.sign(canonicalize(unsigned)))}
    documents = {
        "by another key": by_other,
        "by a key that nobody published": {**signed(key_id=other.key_id)},
        "with another end": {**pack, "valid_until": format_timestamp(_AT + 2 * _LIFE)},
        "with another intent": {**pack, "codes": [{**first, "intent": {**first["intent"], "action": "sell"}}, second]},
        "without a Code that was signed": {**pack, "codes": [first]},
        "ends when it begins": signed(valid_until=pack["issued_at"]),
        "of more than 24 hours": signed(valid_until=format_timestamp(_AT + timedelta(hours=24) + _MS)),
        "of another version": signed(version=2),
        "of another format": signed(format="svc-offline-pack-v2"),
        "with its Codes out of order": signed(codes=[second, first]),
        "with a Code twice": signed(codes=[first, first]),
        "with one more member": signed(note=""),
        "without its campaign": signed(campaign_id=...),
        "with a token in place of its digest": signed(codes=[{**first, "token_digest": _TOKENS[0]}]),
        "with two Codes of one token": signed(codes=[first, {**second, "token_digest": first["token_digest"]}]),
        "with an intent of 33 levels": signed(codes=[{**first, "intent": {**first["intent"], "resource": _nest(32)}}]),
        "with a time of another spelling": signed(issued_at=pack["issued_at"].replace("Z", "+00:00")),
    }
    return {name: json.dumps(document) for name, document in documents.items()} | {"empty": "", "a list": "[]"}


def _nest(levels: int) -> Json:
    return {"a": _nest(levels - 1) if levels > 1 else 0}


def _lookups(packs: dict[str, Json]) -> list[Json]:
    hour, skew = timedelta(hours=1), timedelta(minutes=2)
    first, second, unknown = _TOKENS
    cases: list[tuple[str, list[str], str, datetime, str | None]] = [
        ("fresh", ["campaign"], first, _AT, "campaign"),
        ("a token that it does not name", ["campaign"], unknown, _AT, None),
        ("no token", ["campaign"], "brd_short", _AT, None),
        ("no pack", [], first, _AT, None),
        ("two minutes before it was made", ["campaign"], first, _AT - skew, "campaign"),
        ("earlier: the clock is wrong", ["campaign"], first, _AT - skew - _MS, None),
        ("just before its end", ["campaign"], first, _AT + _LIFE - _MS, "campaign"),
        ("at its end", ["campaign"], first, _AT + _LIFE, None),
        ("just before the Code's end", ["campaign"], second, _AT + 2 * hour - _MS, "campaign"),
        ("at the Code's end", ["campaign"], second, _AT + 2 * hour, None),
        ("24 hours", ["of 24 hours"], first, _AT + 24 * hour - _MS, "of 24 hours"),
    ]
    for name, found in (
        ("newer, without the first Code", None),
        ("newer, of the project, empty", None),
        ("newer, of another campaign, empty", "campaign"),
        ("newer, of another project, empty", "campaign"),
        ("newer, with the first Code", "newer, with the first Code"),
        ("newer, empty, of five minutes", None),
    ):
        cases.append((f"beside one that is {name}", ["campaign", name], first, _AT + 3 * hour, found))
        cases.append((f"after one that is {name}", [name, "campaign"], first, _AT + 3 * hour, found))
    beside = ["campaign", "newer, of another project, empty"]
    cases.append(("beside a pack from the future, of whatever project", beside, first, _AT + hour - skew - _MS, None))
    return [
        {
            "name": name,
            "packs": known,
            "token": token,
            "now": format_timestamp(now),
            "found": None if found is None else _describe(packs[found], token),
        }
        for name, known, token, now, found in cases
    ]


def _describe(pack: Json, token: str) -> Json:
    code = next(each for each in pack["codes"] if each["xr_id"].endswith(token[-1]))
    return {
        "pack_id": pack["pack_id"],
        "xr_id": code["xr_id"],
        "intent": code["intent"],
        "as_of": pack["issued_at"],
        "valid_until": min(pack["valid_until"], code["expires_at"]),
    }
