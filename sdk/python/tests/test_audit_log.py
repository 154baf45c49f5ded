"""Downloaded audit logs: the first entry that is altered, missing or moved is named."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from soundmark_sdk import AuditLogRejected, LogPolicy, verify_audit_log
from soundmark_sdk.failures import Unverifiable

from .genuine_log import ORIGIN, GenuineLog, Signer, chain, digest_of

Json: TypeAlias = dict[str, Any]
ORGANIZATION = "org_1"


def entry(number: int) -> Json:
    return {
        "id": f"aud_{number}",
        "organization_id": ORGANIZATION,
        "project_id": None,
        "action": "project.updated",
        "actor": {"type": "user", "id": "spät ☃"},
        "outcome": "completed",
        "metadata": {"name": f"number {number}", "n": number},
        "created_at": "2026-11-20T10:00:00.000Z",
        "finalised_at": "2026-11-20T10:00:00.000Z",
    }


def make_log(*heads: Json) -> tuple[LogPolicy, Callable[[str], bytes | None], list[str]]:
    """Return a policy, how to get the proofs of a log that holds these heads, and the digests that were asked for."""
    log_key, asked = Signer(ORIGIN), list[str]()
    log = GenuineLog([log_key])
    proofs = {}
    for head in heads:
        digest = digest_of("audit.head/head", head)
        proofs[digest] = log.add({"v": 1, "kind": "audit.head", "head": digest})

    def fetch(digest: str) -> bytes | None:
        asked.append(digest)
        return log.prove(proofs[digest]).encode() if digest in proofs else None

    return LogPolicy(log_key.vkey), fetch, asked


def head_at(position: int, entries: list[Json]) -> Json:
    return {"organization_id": ORGANIZATION, "entries": position, "chain_hash": entries[position - 1]["chain_hash"]}


def lines(entries: list[Json]) -> list[bytes]:
    """Return a download: the newest first."""
    return [json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in reversed(entries)]


@pytest.fixture
def entries() -> list[Json]:
    """Ten entries that are chained."""
    return chain([entry(number) for number in range(1, 11)])


def test_a_whole_log_is_verified_in_any_order(entries: list[Json]) -> None:
    fresh = {**entry(11), "outcome": "requested", "finalised_at": None, "position": None, "chain_hash": None}
    for given in (lines([*entries, fresh]), lines([*entries, fresh])[::-1], lines([fresh, *entries[5:], *entries[:5]])):
        found = verify_audit_log(given)
        assert (found.organization_id, found.entries, found.unchained, found.covered) == (ORGANIZATION, 10, 1, None)
    assert verify_audit_log([]).entries == 0


def test_the_first_fault_is_named(entries: list[Json], subtests: pytest.Subtests) -> None:
    altered = [{**each, "metadata": {}} if each["position"] in (4, 7) else each for each in entries]
    swapped = [{**entries[3], **places(entries[4])}, {**entries[4], **places(entries[3])}]
    cases: dict[str, tuple[list[Json], int | None, str | None]] = {
        "altered": (altered, 4, "aud_4"),
        "one is missing": (entries[:2] + entries[3:], 3, None),
        "the first are missing": (entries[2:], 1, None),
        "moved": (entries[:3] + swapped + entries[5:], 4, "aud_5"),
        "inserted": ([*entries[:5], {**entry(99), **places(entries[4])}, *entries[5:]], 5, None),
        "another organisation": (
            [*entries, {**entry(11), "organization_id": "org_2", **places(entries[9])}],
            None,
            None,
        ),
        "of another's chain": ([{**each, "organization_id": "org_2"} for each in entries], 1, "aud_1"),
        "altered and missing": (altered[:2] + altered[3:], 3, None),
    }
    for name, (given, position, entry_id) in cases.items():
        with subtests.test(name):
            with pytest.raises(AuditLogRejected) as refused:
                verify_audit_log(lines(given))
            assert refused.value.position == position
            assert entry_id is None or refused.value.entry_id == entry_id
    with pytest.raises(AuditLogRejected, match="positions 3 to 9 are missing"):
        verify_audit_log(lines([*entries[:2], *entries[9:]]))


def places(each: Json) -> Json:
    return {name: each[name] for name in ("position", "chain_hash")}


def test_what_is_no_entry_is_refused(entries: list[Json], subtests: pytest.Subtests) -> None:
    whole = entries[0]
    malformed: list[Any] = [
        "text",
        {**whole, "position": 0},
        {**whole, "position": True},
        {**whole, "position": None},
        {**whole, "chain_hash": "abc"},
        {**whole, "chain_hash": None},
        {**whole, "id": 1},
        {name: whole[name] for name in whole if name != "position"},
    ]
    for each in malformed:
        with subtests.test(each), pytest.raises(AuditLogRejected, match="Line 1"):
            verify_audit_log([json.dumps(each).encode()])
    for line in (b"", b"{", b'{"id":"a","id":"b"}', b'"' + b"x" * (1 << 20) + b'"'):
        with subtests.test(line[:20]), pytest.raises(AuditLogRejected, match="Line 1"):
            verify_audit_log([line])


def test_the_newest_head_in_the_log_covers_what_is_below_it(entries: list[Json]) -> None:
    policy, fetch, asked = make_log(head_at(3, entries), head_at(8, entries))
    found = verify_audit_log(lines(entries), policy=policy, fetch_proof=fetch)
    assert (found.entries, found.covered) == (10, 8)
    assert found.proof is not None
    assert found.proof.size == 2
    forged = chain([{**entry(number), "metadata": {}} for number in range(1, 11)])
    assert verify_audit_log(lines(forged), policy=policy, fetch_proof=fetch).covered == 0
    with pytest.raises(Unverifiable):
        verify_audit_log(lines(entries), policy=LogPolicy(Signer(ORIGIN).vkey), fetch_proof=fetch)
    asked.clear()
    assert verify_audit_log(lines(entries), policy=policy, fetch_proof=fetch, logged_entries=8).covered == 8
    assert len(asked) == 1
    for elsewhere in (0, 4, 11):
        assert verify_audit_log(lines(entries), policy=policy, fetch_proof=fetch, logged_entries=elsewhere).covered == 8


def test_the_likeliest_heads_are_asked_for_first(subtests: pytest.Subtests) -> None:
    """The newest; those after which nothing followed until a head had to be in the log; those at whole minutes."""
    pause, minute, day = 500, 700, "2026-11-20T"

    def final_at(number: int) -> str:
        return "10:00:00.000" if number <= pause else "10:02:20.000" if number <= minute else "10:03:00.000"

    entries = chain(
        [
            {**entry(number), "finalised_at": f"{day}{final_at(number)}Z", "created_at": f"{day}09:00:00.000Z"}
            for number in range(1, 1001)
        ]
    )
    for logged, covered, asked_count in (
        ([1000, 900], 1000, 1),
        ([745, pause], 745, 256),
        ([744, pause], pause, 257),
        ([744, minute], minute, 258),
        ([744, 743], 744, 259),
        ([minute - 1], minute - 1, 258 + 44 + 1),
        ([1], 1, 1000),
        ([], 0, 1000),
    ):
        with subtests.test(logged=logged):
            policy, fetch, asked = make_log(*(head_at(position, entries) for position in logged))
            found = verify_audit_log(lines(entries), policy=policy, fetch_proof=fetch)
            assert (found.covered, len(asked)) == (covered, asked_count)
            assert len(set(asked)) == len(asked)


def test_a_head_is_found_among_the_newest_ten_thousand() -> None:
    """An organisation that writes all the time, and two minutes without a head, is no reason to refuse its download."""
    busy = [{**entry(number), "finalised_at": "2026-11-20T10:00:30.000Z"} for number in range(1, 10_011)]
    entries = chain(busy)
    for logged, covered, asked_count in ((7_000, 7_000, 3_011), (11, 11, 10_000), (10, 0, 10_000)):
        policy, fetch, asked = make_log(head_at(logged, entries))
        found = verify_audit_log(lines(entries), policy=policy, fetch_proof=fetch)
        assert (found.covered, len(asked)) == (covered, asked_count)
    policy, fetch, asked = make_log(head_at(10, entries))
    found = verify_audit_log(lines(entries), policy=policy, fetch_proof=fetch, logged_entries=10)
    assert (found.covered, len(asked)) == (10, 1)
