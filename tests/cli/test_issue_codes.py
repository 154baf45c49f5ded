"""`soundmark codes issue`, with an API key, against a real Core."""

import json
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.processes.command_server import find_forked_soundmark
from support.processes.faulty_proxy import Fault, FaultyProxy

from .conftest import Tenant, answered, environ


def test_a_code_is_issued_and_shown(tenant: Tenant) -> None:
    done = tenant.run("codes", "issue", *tenant.issuing)
    (listed,) = tenant.answer("/v1/codes")["data"]
    assert (done.status, done.err) == (0, "")
    assert listed["xr_id"] in done.out
    assert listed["broadcast_frame"] in done.out


@pytest.mark.parametrize("how", ["file", "stdin"])
def test_an_intent_may_come_from_a_file_or_stdin(tenant: Tenant, tmp_path: Path, how: str) -> None:
    intent = {"type": "link", "action": "open", "resource": {"title": "Grüße 😀"}}
    (tmp_path / "intent.json").write_text(json.dumps(intent, ensure_ascii=False), encoding="utf-8")
    options = [*tenant.issuing[:4], "--expires-in", "1h", "--organization", tenant.organization_id, "--json"]
    where = f"@{tmp_path / 'intent.json'}" if how == "file" else "@-"
    with (tmp_path / "intent.json").open("rb") as file:
        done = subprocess.run(
            [find_forked_soundmark(), "codes", "issue", *options, "--intent", where],
            check=True,
            stdin=file,
            capture_output=True,
            timeout=60,
            env=environ({"BASE_URL": tenant.service.url, "API_KEY": tenant.key}),
        )
    assert json.loads(done.stdout)["intent"] == intent


def test_several_batches_are_issued_with_progress(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """More Codes than a batch holds; a terminal shows a progress bar."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    make_quota(tenant, 1000)
    done = tenant.run("codes", "issue", *tenant.issuing, "--count", "120", "--json")
    codes = json.loads(done.out)["data"]
    assert len({code["xr_id"] for code in codes}) == 120
    assert "Issuing" in done.err
    assert tenant.answer("/v1/usage")["codes"]["issued"] == 120


def make_quota(tenant: Tenant, monthly_code_quota: int) -> None:
    tenant.service.run_sql(
        "UPDATE plans SET monthly_code_quota = %s WHERE id = 'plan_codes_starter'", monthly_code_quota
    )


def test_a_url_stands_for_the_intent_to_open_it(tenant: Tenant) -> None:
    """It is issued as it was given."""
    options = ("--issuer", "Radio Nordlicht", "--expires-in", "1h", "--json")
    code = answered(tenant.run("codes", "issue", "--url", "https://example.org/tonight", *options))
    assert code["intent"] == {"type": "link", "action": "open", "resource": {"url": "https://example.org/tonight"}}


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        (("--url", "https://example.org", "--intent", "{}"), "give either --url or --intent"),
        ((), "give either --url or --intent"),
        (("--url", "example.org/tonight"), "--url must be a whole address"),
        (("--url", "https:///tonight"), "--url must be a whole address"),
        (("--url", "https://[/"), "--url must be a whole address"),
        (("--url", ""), "--url must be a whole address"),
    ],
)
def test_a_part_of_an_address_or_two_intents_are_refused(tenant: Tenant, given: tuple[str, ...], refusal: str) -> None:
    done = tenant.run("codes", "issue", "--issuer", "Radio Nordlicht", "--expires-in", "1h", *given)
    assert done.status == 2
    assert refusal in " ".join(done.err.split())


def test_more_than_the_quota_is_refused_before_any_code_is_issued(tenant: Tenant) -> None:
    make_quota(tenant, 110)
    done = tenant.run("codes", "issue", *tenant.issuing, "--count", "120")
    assert done.refusal.startswith(
        "nothing was issued: 110 Codes left of this month's quota; --count 110 would succeed"
    )
    assert done.refusal.endswith(f"the quota resets at {next_month()}")
    assert tenant.answer("/v1/usage")["codes"]["issued"] == 0


def test_issued_codes_are_printed_when_the_rest_is_refused(tenant: Tenant) -> None:
    """The quota allows one of the two batches; its Codes exist, so they are printed, and a repetition returns them."""
    make_quota(tenant, 110)
    issue = ["codes", "issue", *tenant.issuing[:-2], "--expires-at", "2099-01-01T00:00:00Z", "--count", "120", "--json"]
    issue += ["--idempotency-key", "playout-of-tonight"]
    done = tenant.run(*issue)
    assert (done.status, len(json.loads(done.out)["data"])) == (1, 100)
    assert done.refusal.startswith("quota_exceeded (429)")
    assert f"the quota resets at {next_month()}" in done.refusal
    assert done.refusal.endswith("100 of 120 Codes were issued; then issue the other 20 with --count 20")
    assert "24 hours" not in done.refusal
    make_quota(tenant, 1000)
    again = tenant.run(*issue)
    assert len(answered(again)["data"]) == 120
    assert answered(again)["data"][:100] == json.loads(done.out)["data"]
    assert tenant.answer("/v1/usage")["codes"]["issued"] == 120


def test_a_single_code_beyond_the_quota_says_when_it_returns(tenant: Tenant) -> None:
    tenant.make_codes(100)
    done = tenant.run("codes", "issue", *tenant.issuing)
    assert done.refusal.startswith("quota_exceeded (429)")
    assert f"; the quota resets at {next_month()}" in done.refusal


def next_month() -> str:
    """Return when the quota is available again."""
    now = datetime.now(UTC)
    year, month = (now.year + 1, 1) if now.month == 12 else (now.year, now.month + 1)
    return f"{year}-{month:02}-01 00:00 UTC"


@pytest.mark.parametrize("fault", ["request lost", "answer lost", "half an answer"])
def test_an_issuance_survives_a_broken_connection(tenant: Tenant, fault: Fault) -> None:
    with FaultyProxy(tenant.service.url, fault) as proxy:
        code = answered(tenant.run("codes", "issue", *tenant.issuing, "--json", url=proxy.url))
    assert [one["xr_id"] for one in tenant.answer("/v1/codes")["data"]] == [code["xr_id"]]
    assert "recover" in proxy.passed[1].path


def test_a_batch_over_a_connection_that_breaks_is_issued_once(tenant: Tenant) -> None:
    with FaultyProxy(tenant.service.url, "answer lost") as proxy:
        codes = answered(tenant.run("codes", "issue", *tenant.issuing, "--count", "5", "--json", url=proxy.url))
    assert len(codes["data"]) == tenant.answer("/v1/usage")["codes"]["issued"] == 5


def test_a_connection_that_stays_broken_is_one_line_that_says_how_to_continue(tenant: Tenant) -> None:
    with FaultyProxy(tenant.service.url, "answer lost", *["request lost"] * 20) as proxy:  # type: ignore[list-item]  # a list of texts, each a fault
        done = tenant.run("codes", "issue", *tenant.issuing, url=proxy.url)
    assert "did not answer completely" in done.refusal
    assert done.out == ""
    go_on = done.err.split("repeat the command within 24 hours with ")[1].split()
    code = answered(tenant.run("codes", "issue", *tenant.issuing[:-2], *go_on, "--json"))
    assert [one["xr_id"] for one in tenant.answer("/v1/codes")["data"]] == [code["xr_id"]]


def test_an_interrupted_command_says_how_to_continue(tenant: Tenant) -> None:
    with FaultyProxy(tenant.service.url) as proxy:
        arguments = ["codes", "issue", *tenant.issuing, "--organization", tenant.organization_id]
        settings = {"BASE_URL": proxy.url, "API_KEY": tenant.key}
        with (
            proxy.holding(),
            subprocess.Popen(
                [find_forked_soundmark(), *arguments],
                stderr=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environ(settings),
            ) as process,
        ):
            assert proxy.arrived.wait(30)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert err.startswith("soundmark: interrupted; to continue without issuing anything twice, repeat the command ")
    assert err.count("\n") == 1


def test_the_users_own_key_makes_a_repetition_harmless(tenant: Tenant) -> None:
    options = [*tenant.issuing[:-2], "--expires-at", "2099-01-01T00:00:00+01:00", "--json"]
    options += ["--idempotency-key", "playout-2026-11-20"]
    first, second = (answered(tenant.run("codes", "issue", *options)) for _ in range(2))
    assert first == second
    other = tenant.run("codes", "issue", *options, "--campaign", "cmp_" + "0" * 22)
    assert other.refusal.startswith("idempotency_conflict (409)")


def test_a_key_has_16_to_128_characters_and_in_batches_120(tenant: Tenant) -> None:
    """Each batch has its own key, derived from the command's."""
    longest, too_long = "k" * 128, "k" * 129
    assert tenant.run("codes", "issue", *tenant.issuing, "--idempotency-key", longest).status == 0
    assert tenant.run("codes", "issue", *tenant.issuing, "--idempotency-key", too_long).status == 2
    assert tenant.run("codes", "issue", *tenant.issuing, "--idempotency-key", "k" * 15).status == 2
    many = ["--count", "2", "--idempotency-key"]
    assert tenant.run("codes", "issue", *tenant.issuing, *many, longest[:120]).status == 0
    assert tenant.run("codes", "issue", *tenant.issuing, *many, longest[:121]).status == 2


def test_a_dry_run_takes_no_key(tenant: Tenant) -> None:
    done = tenant.run("codes", "issue", *tenant.issuing, "--dry-run", "--idempotency-key", "k" * 16)
    assert (done.status, done.out) == (2, "")
    assert tenant.answer("/v1/usage")["codes"]["issued"] == 0


def test_a_dry_run_issues_nothing_and_reports_by_its_status(tenant: Tenant) -> None:
    done = tenant.run("codes", "issue", *tenant.issuing, "--dry-run")
    assert (done.status, done.out) == (0, "it would be issued; 100 Codes left of this month's quota\n")
    assert answered(tenant.run("codes", "issue", *tenant.issuing, "--dry-run", "--count", "100", "--json")) == {
        "would_issue": True,
        "code": None,
        "quota_remaining": 100,
    }
    tenant.make_codes(60)
    refused = tenant.run("codes", "issue", *tenant.issuing, "--dry-run", "--count", "41")
    assert refused.refusal == "it would be refused: quota_exceeded; 40 Codes left of this month's quota"
    assert tenant.answer("/v1/usage")["codes"]["issued"] == 60


def test_a_dry_run_judges_more_than_a_batch_holds(tenant: Tenant) -> None:
    """The service judges 100 at a time, and would issue each of these batches by itself."""
    dry_run = ("codes", "issue", *tenant.issuing, "--dry-run", "--count", "250")
    done = tenant.run(*dry_run)
    assert done.refusal == "it would be refused: quota_exceeded; 100 Codes left of this month's quota"
    verdict = json.loads(tenant.run(*dry_run, "--json").out)
    assert verdict == {"would_issue": False, "code": "quota_exceeded", "quota_remaining": 100}
    make_quota(tenant, 250)
    assert tenant.run(*dry_run).out == "it would be issued; 250 Codes left of this month's quota\n"
    assert tenant.answer("/v1/usage")["codes"]["issued"] == 0
