"""`soundmark log monitor`: an organisation finds each of its Codes in the log, and no revocation but its own."""

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from soundmark_sdk import VerifiedCertificate
from soundmark_sdk.client.records import ListedCode

from soundmark.cli.log_monitor import Deletion, LoggedCodes, OwnCode, judge_codes, judge_unlisted
from soundmark.core.context import Context
from soundmark.core.domain.log.auditing import LogFault
from soundmark.kit.text import base64url

from .conftest import Done, PastPolicies, Tenant, integrate, run, serving_core

NOW: Final = datetime(2026, 11, 26, 21, 0, tzinfo=UTC)


async def test_a_monitor_finds_each_code_and_no_foreign_revocation(
    tenant: Tenant, ctx: Context, tmp_path: Path, past_policies: PastPolicies
) -> None:
    codes = tenant.make_codes(3)
    state, ordered = str(tmp_path / "log.json"), tmp_path / "ordered"
    monitor = ("log", "monitor", "--state", state)
    await integrate(ctx)
    assert json.loads(tenant.run(*monitor, "--json").out) == {"size": 5, "codes": 3, "revoked": [], "deleted": {}}
    tenant.service.revoke(codes[0])
    await integrate(ctx)
    assert json.loads(tenant.run(*monitor, "--json").out)["revoked"] == [codes[0]["xr_id"]]
    ordered.write_text("")
    assert "you did not order it" in tenant.run(*monitor, "--ordered", str(ordered)).refusal
    ordered.write_text(codes[0]["xr_id"] + "\n")
    assert tenant.run(*monitor, "--ordered", str(ordered)).status == 0
    assert run("log", "verify", "--base-url", tenant.service.url, "--state", state).status == 0
    assert json.loads(tenant.run(*monitor, "--json").out)["codes"] == 3
    past_policies("DELETE FROM codes WHERE xr_id = %s", codes[1]["xr_id"])
    assert f"the Code {codes[1]['xr_id']} was listed before" in tenant.run(*monitor).refusal


async def test_a_monitor_reads_codes_with_the_deepest_and_the_largest_intents(
    tenant: Tenant, ctx: Context, tmp_path: Path
) -> None:
    """A whole Code is larger than its intent, and one level deeper."""
    deep: object = "a"
    for _ in range(31):
        deep = {"a": deep}
    for resource in (deep, {"a": "x" * 16_000}):
        tenant.make_codes(1, intent={"type": "link", "action": "open", "resource": resource})
    await integrate(ctx)
    done = tenant.run("log", "monitor", "--state", str(tmp_path / "log.json"), "--json")
    assert done.status == 0, done
    assert json.loads(done.out)["codes"] == 2


async def test_a_monitor_goes_on_after_a_deletion_and_never_without_its_certificate(
    tenant: Tenant, ctx: Context, tmp_path: Path, timely_audience_url: str
) -> None:
    """A project is deleted, then everything: each Code that is gone is named once, with the certificate."""
    service, other = tenant.service, {"organization_id": tenant.organization_id, "name": "Evening show"}
    first = sorted(code["xr_id"] for code in tenant.make_codes(2))
    (kept,) = tenant.make_codes(1, project_id=service._post("/v1/projects", other)["id"])
    state = tmp_path / "log.json"

    def monitor(*arguments: str) -> Done:
        about = ("--organization", tenant.organization_id, "--state", str(state))
        return tenant.run_as_operator("log", "monitor", *about, *arguments)

    def delete(path: str, subject_id: str) -> tuple[str, str]:
        """Return the option that names the certificate, and the certificate's id."""
        with serving_core(service.database_url, audience_url=timely_audience_url) as closing:
            query = {"organization_id": tenant.organization_id} if path == "projects" else {}
            deleted = closing.client.request(
                "DELETE", f"/v1/{path}/{subject_id}", params=query, json={"confirmation": subject_id}
            )
            certificate = closing.client.get(deleted.raise_for_status().headers["location"]).raise_for_status()
        file = tmp_path / f"{path}.json"
        file.write_bytes(certificate.content)
        return f"--certificate={file}", certificate.json()["certificate_id"]

    await integrate(ctx)
    assert json.loads(monitor("--json").out)["codes"] == 3
    option, certificate_id = delete("projects", tenant.project_id)
    assert f"the certificate {certificate_id} is not in the log" in monitor(option).refusal
    await integrate(ctx)
    unexplained = f"the Code {first[0]} was listed before, and no longer is"
    assert unexplained in monitor().refusal, "a certificate that nobody shows explains nothing"
    before = state.read_text()
    vanished = json.loads(before)
    vanished["codes"]["xr_vanished"] = vanished["codes"][kept["xr_id"]]
    state.write_text(json.dumps(vanished))
    assert "the Code xr_vanished was listed before" in monitor(option).refusal, "it was in the other project"
    state.write_text(before)
    done = monitor(option)
    assert done.status == 0, done
    assert "1 Codes of yours are in the log" in done.out
    assert [line.split()[0] for line in done.out.splitlines() if certificate_id in line] == first
    assert json.loads(monitor("--json").out) == {"size": 6, "codes": 1, "revoked": [], "deleted": {}}

    option, certificate_id = delete("organizations", tenant.organization_id)
    await integrate(ctx)
    assert monitor().status == 1
    done = monitor(option, "--json")
    assert json.loads(done.out) == {"size": 7, "codes": 0, "revoked": [], "deleted": {certificate_id: [kept["xr_id"]]}}
    forged = tmp_path / "organizations.json"
    forged.write_text(forged.read_text().replace('"codes":1', '"codes":2', 1))
    assert f"{forged} is not genuine: " in monitor(option).refusal


def test_a_deleted_code_that_was_revoked_must_have_been_ordered() -> None:
    certificate = VerifiedCertificate("dct_a", "project", "prj_a", "org_a", NOW, NOW, {}, {}, "sig_a")
    logged = LoggedCodes({b"issued"}, {b"revoked"}, {b"sealed"})
    known = {"xr_a": [*map(base64url.encode, (b"issued", b"revoked")), "org_a", "prj_a"]}
    for ordered in (None, frozenset({"xr_a"})):
        deletions = [Deletion(certificate, b"sealed")]
        assert judge_unlisted(known, [], logged, deletions, ordered=ordered) == {"dct_a": ["xr_a"]}
    with pytest.raises(LogFault, match="you did not order it"):
        judge_unlisted(known, [], logged, deletions, ordered=frozenset())


LISTED: Final = ListedCode(
    xr_id="xr_example",
    organization_id="org_example",
    project_id="prj_example",
    campaign_id=None,
    issuer="Radio",
    issued_at=NOW - timedelta(minutes=2),
    expires_at=NOW + timedelta(days=1),
    status="active",
    revoked_at=None,
    broadcast_token="brd_example",
    broadcast_frame="XRC1:brd_example",
    audience_enabled=False,
    audience_integration_id=None,
)
REVOKED: Final = replace(LISTED, status="revoked", revoked_at=NOW - timedelta(minutes=1))


def test_a_monitor_compares_what_is_listed_with_what_is_logged(subtests: pytest.Subtests) -> None:
    """What was answered less than half a minute ago may not be in the log yet."""
    missing, only_issued = LoggedCodes(), LoggedCodes({b"issued"})
    both = LoggedCodes({b"issued"}, {b"revoked"})
    fresh = replace(LISTED, issued_at=NOW - timedelta(seconds=29))
    freshly_revoked = replace(REVOKED, revoked_at=NOW - timedelta(seconds=29))
    own = frozenset({"xr_example"})
    cases: list[tuple[str, ListedCode, LoggedCodes, frozenset[str] | None, str | None]] = [
        ("issued and logged", LISTED, only_issued, None, None),
        ("issued and not logged", LISTED, missing, None, "is not in the log"),
        ("issued just now", fresh, missing, None, None),
        ("revoked and logged", REVOKED, both, None, None),
        ("revoked and not logged", REVOKED, only_issued, None, "the log does not say so"),
        ("revoked just now", freshly_revoked, only_issued, None, None),
        ("revoked in the log alone", LISTED, both, None, "the service does not say so"),
        ("ordered, and listed before it was revoked", LISTED, both, own, None),
        ("ordered", REVOKED, both, own, None),
        ("not ordered", REVOKED, both, frozenset(), "you did not order it"),
    ]
    for name, listed, logged, ordered, fault in cases:
        expected = nullcontext() if fault is None else pytest.raises(LogFault, match=fault)
        with subtests.test(name), expected:
            judge_codes([OwnCode(listed, b"issued", b"revoked")], logged, at=NOW, ordered=ordered, since=None)
    with subtests.test("ended before the log began"):
        judge_codes([OwnCode(REVOKED, b"issued", b"revoked")], missing, at=NOW, ordered=None, since=NOW)
    with subtests.test("active since before the log began"), pytest.raises(LogFault, match="is not in the log"):
        judge_codes([OwnCode(LISTED, b"issued", b"revoked")], missing, at=NOW, ordered=None, since=NOW)
