"""The published vectors of offline packs, which the JavaScript SDK reads too."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest
from soundmark_sdk import CertificateRejected, LogPolicy, find_in_packs, read_key_history, verify_offline_pack
from soundmark_sdk.timestamps import write

VECTORS: Final[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "docs" / "vectors" / "offline-pack-v1.json").read_text(encoding="ascii")
)
KEYS: Final = read_key_history(json.dumps(VECTORS["keys"]).encode())
PACKS: Final = {name: verify_offline_pack(pack, KEYS) for name, pack in VECTORS["packs"].items()}


def test_the_log_knows_each_pack_by_its_digest() -> None:
    assert {name: pack.digest for name, pack in PACKS.items()} == VECTORS["digests"]


def test_every_spoilt_pack_is_refused(subtests: pytest.Subtests) -> None:
    for case in VECTORS["refused"]:
        with subtests.test(case["name"]), pytest.raises(CertificateRejected):
            verify_offline_pack(case["text"].encode(), KEYS)


def test_each_lookup_finds_what_is_published(subtests: pytest.Subtests) -> None:
    for case in VECTORS["lookups"]:
        packs = [PACKS[name] for name in case["packs"]]
        found = find_in_packs(packs, case["token"], datetime.fromisoformat(case["now"]))
        described = found and {
            "pack_id": found.pack_id,
            "xr_id": found.xr_id,
            "intent": {"type": found.intent.type, "action": found.intent.action, "resource": found.intent.resource},
            "as_of": write(found.as_of),
            "valid_until": write(found.valid_until),
        }
        with subtests.test(case["name"]):
            assert described == case["found"]


def test_only_a_genuine_proof_makes_a_pack_a_logged_one(subtests: pytest.Subtests) -> None:
    proofs = VECTORS["proofs"]
    for is_accepted in (True, False):
        for case in proofs["accepted" if is_accepted else "refused"]:
            policy = LogPolicy(proofs["log"], [proofs["witness"]], case["quorum"])
            pack = verify_offline_pack(VECTORS["packs"]["campaign"], KEYS, proof=case["proof"].encode())
            with subtests.test(case.get("name"), quorum=case["quorum"]):
                assert pack.is_logged(policy) == is_accepted
