"""The published vectors of the log, as Core and the Python SDK read them."""

import json
from typing import Any, Final

import pytest
from golden_files import golden_files
from soundmark_sdk import LogPolicy, verify_log_proof
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.transparency.proof import VerifiedProof
from support.api.published_contract import make_validator
from support.log.independent import tlog
from vectors import VECTORS

from soundmark.core.domain.log.entry import digest, read_entry
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.signed_notes import COSIGNATURE, parse_verifier_key
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url

LOG: Final[dict[str, Any]] = json.loads((VECTORS / "transparency-log-v1.json").read_text(encoding="ascii"))
KEY: Final = parse_verifier_key(LOG["log"]["vkey"])
WITNESS: Final = parse_verifier_key(LOG["witness"]["vkey"], types=(COSIGNATURE,))


def verify(case: dict[str, Any]) -> VerifiedProof:
    """Verify that the proof of a case is one of the first entry."""
    policy = LogPolicy(LOG["log"]["vkey"], [LOG["witness"]["vkey"]], case["quorum"])
    digest = LOG["entries"][0]["digests"]["code.issued/answer"]
    return verify_log_proof(case["proof"].encode(), policy, "code.issued/answer", digest)


def test_each_entry_commits_to_its_values() -> None:
    for case in LOG["entries"]:
        entry = read_entry(case["entry"].encode())
        for (path, value), text in zip(case["values"].items(), case["digests"].values(), strict=True):
            kind, _, member = path.partition("/")
            assert base64url.encode(digest(kind, member, canonicalize(value))) == text
        assert entry.kind == kind
        assert [base64url.encode(each) for each in entry.digests] == list(case["digests"].values())


def test_each_entry_is_one_of_the_published_schema_and_nothing_else_is() -> None:
    judge = make_validator(json.loads(golden_files()["schemas/log-entry-v1.json"]))
    for case in LOG["entries"]:
        entry = json.loads(case["entry"])
        assert judge.is_valid(entry)
        assert not judge.is_valid({**entry, "note": ""})
        assert not judge.is_valid({**entry, "v": 2})
        assert not judge.is_valid({**entry, "kind": "code.seen"})
        assert not any(judge.is_valid({each: entry[each] for each in entry if each != name}) for name in entry)


def test_each_proof_is_accepted_and_each_other_refused(subtests: pytest.Subtests) -> None:
    for case in LOG["proofs"]:
        with subtests.test(case["name"]):
            assert verify(case).cosignatures >= case["quorum"]
    for case in LOG["refused"]:
        with subtests.test(case["name"]), pytest.raises(Unverifiable):
            verify(case)


def test_others_accept_the_checkpoints_of_the_proofs() -> None:
    for case in LOG["proofs"]:
        note = tlog.parse_note(case["proof"].partition("\n\n")[2])
        result = tlog.verify_checkpoint(
            note, tlog.parse_vkey(LOG["log"]["vkey"]), [tlog.parse_vkey(LOG["witness"]["vkey"])], case["quorum"]
        )
        assert result.ok, result


def test_each_key_is_that_of_its_seed() -> None:
    for key, seed in ((KEY, LOG["log"]["seed"]), (WITNESS, LOG["witness"]["seed"])):
        assert SigningKey.from_seed("", base64url.decode(seed)).public_key == key.public_key
