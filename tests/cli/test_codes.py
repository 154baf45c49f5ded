"""`soundmark codes`, with a server key, against a real Core."""

import json
import os
import signal
import subprocess
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from soundmark_sdk import hear
from support.core_settings import OPERATOR_TOKEN
from support.faulty_proxy import Fault, FaultyProxy
from support.tenant import INTENT
from typer.testing import CliRunner

from soundmark.cli import codes

from .conftest import COMMAND, Done, Tenant, answered, environ, run

UNKNOWN = "xr_" + "0" * 22


def test_a_code_is_issued_and_shown(tenant: Tenant) -> None:
    done = tenant.run("codes", "issue", *tenant.issuing)
    (listed,) = tenant.answer("/v1/codes")["data"]
    assert (done.status, done.err) == (0, "")
    assert listed["xr_id"] in done.out
    assert listed["broadcast_frame"] in done.out


def test_json_is_what_the_api_answers(tenant: Tenant) -> None:
    code = answered(tenant.run("codes", "issue", *tenant.issuing, "--json"))
    assert code == tenant.answer(f"/v1/codes/{code['xr_id']}")
    assert answered(tenant.run("codes", "show", code["xr_id"], "--json")) == code
    assert answered(tenant.run("codes", "list", "--json")) == tenant.answer("/v1/codes")
    revoked = answered(tenant.run("codes", "revoke", code["xr_id"], "--json"))
    assert revoked == tenant.answer(f"/v1/codes/{code['xr_id']}")


@pytest.mark.parametrize("how", ["file", "stdin"])
def test_an_intent_may_stand_elsewhere(tenant: Tenant, tmp_path: Path, how: str) -> None:
    intent = {"type": "link", "action": "open", "resource": {"title": "Grüße 😀"}}
    (tmp_path / "intent.json").write_text(json.dumps(intent, ensure_ascii=False), encoding="utf-8")
    options = [*tenant.issuing[:4], "--expires-in", "1h", "--organization", tenant.organization_id, "--json"]
    where = f"@{tmp_path / 'intent.json'}" if how == "file" else "@-"
    with (tmp_path / "intent.json").open("rb") as file:
        done = subprocess.run(
            [*COMMAND, "codes", "issue", *options, "--intent", where],
            check=True,
            stdin=file,
            capture_output=True,
            timeout=60,
            env=environ({"BASE_URL": tenant.service.url, "API_KEY": tenant.key}),
        )
    assert json.loads(done.stdout)["intent"] == intent


def test_several_batches_are_issued_with_progress(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a batch holds; on a terminal a bar shows how far it is."""
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


def test_what_the_quota_does_not_hold_is_refused_before_a_part_of_it_is_issued(tenant: Tenant) -> None:
    make_quota(tenant, 110)
    done = tenant.run("codes", "issue", *tenant.issuing, "--count", "120")
    assert done.refusal.startswith(
        "nothing was issued: 110 Codes left of this month's quota; --count 110 would succeed"
    )
    assert done.refusal.endswith(f"the quota resets at {next_month()}")
    assert tenant.answer("/v1/usage")["codes"]["issued"] == 0


def test_issued_codes_are_printed_when_the_rest_is_refused(tenant: Tenant) -> None:
    """The quota holds one batch of the two; its Codes exist, so they are printed, and a repeat answers them again."""
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
    """When the quota is there again."""
    now = datetime.now(UTC)
    year, month = (now.year + 1, 1) if now.month == 12 else (now.year, now.month + 1)
    return f"{year}-{month:02}-01 00:00 UTC"


@pytest.mark.parametrize("fault", ["request lost", "answer lost", "half an answer"])
def test_a_connection_that_breaks_is_made_up_for(tenant: Tenant, fault: Fault) -> None:
    with FaultyProxy(tenant.service.url, fault) as proxy:
        code = answered(tenant.run("codes", "issue", *tenant.issuing, "--json", url=proxy.url))
    assert [one["xr_id"] for one in tenant.answer("/v1/codes")["data"]] == [code["xr_id"]]
    assert "recover" in proxy.passed[1].path


def test_a_batch_over_a_connection_that_breaks_is_issued_once(tenant: Tenant) -> None:
    with FaultyProxy(tenant.service.url, "answer lost") as proxy:
        codes = answered(tenant.run("codes", "issue", *tenant.issuing, "--count", "5", "--json", url=proxy.url))
    assert len(codes["data"]) == tenant.answer("/v1/usage")["codes"]["issued"] == 5


def test_a_connection_that_stays_broken_is_one_line_that_says_how_to_go_on(tenant: Tenant) -> None:
    with FaultyProxy(tenant.service.url, "answer lost", *["request lost"] * 20) as proxy:  # type: ignore[list-item]  # a list of texts, each a fault
        done = tenant.run("codes", "issue", *tenant.issuing, url=proxy.url)
    assert "did not answer completely" in done.refusal
    assert done.out == ""
    go_on = done.err.split("repeat the command within 24 hours with ")[1].split()
    code = answered(tenant.run("codes", "issue", *tenant.issuing[:-2], *go_on, "--json"))
    assert [one["xr_id"] for one in tenant.answer("/v1/codes")["data"]] == [code["xr_id"]]


def test_a_command_that_is_interrupted_says_how_to_go_on(tenant: Tenant) -> None:
    with FaultyProxy(tenant.service.url) as proxy:
        arguments = ["codes", "issue", *tenant.issuing, "--organization", tenant.organization_id]
        settings = {"BASE_URL": proxy.url, "API_KEY": tenant.key}
        with (
            proxy.holding(),
            subprocess.Popen(
                [*COMMAND, *arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ(settings)
            ) as process,
        ):
            assert proxy.arrived.wait(30)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert err.startswith("soundmark: interrupted; to continue without issuing anything twice, repeat the command ")
    assert err.count("\n") == 1


def test_a_key_of_ones_own_makes_a_repeat_harmless(tenant: Tenant) -> None:
    options = [*tenant.issuing[:-2], "--expires-at", "2099-01-01T00:00:00+01:00", "--json"]
    options += ["--idempotency-key", "playout-2026-11-20"]
    first, second = (answered(tenant.run("codes", "issue", *options)) for _ in range(2))
    assert first == second
    other = tenant.run("codes", "issue", *options, "--campaign", "cmp_" + "0" * 22)
    assert other.refusal.startswith("idempotency_conflict (409)")


def test_a_key_has_16_to_128_characters_and_in_batches_120(tenant: Tenant) -> None:
    """Each batch has a key of its own, made of the command's."""
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


def test_a_dry_run_does_nothing_and_says_so_by_its_status(tenant: Tenant) -> None:
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
    """As a whole: the service judges 100 at a time, and each of them by itself would be issued."""
    dry_run = ("codes", "issue", *tenant.issuing, "--dry-run", "--count", "250")
    done = tenant.run(*dry_run)
    assert done.refusal == "it would be refused: quota_exceeded; 100 Codes left of this month's quota"
    verdict = json.loads(tenant.run(*dry_run, "--json").out)
    assert verdict == {"would_issue": False, "code": "quota_exceeded", "quota_remaining": 100}
    make_quota(tenant, 250)
    assert tenant.run(*dry_run).out == "it would be issued; 250 Codes left of this month's quota\n"
    assert tenant.answer("/v1/usage")["codes"]["issued"] == 0


def test_a_list_is_filtered_and_paged(tenant: Tenant) -> None:
    campaign = tenant.make_campaign()
    codes = tenant.make_codes(3, campaign_id=campaign["id"], issuer="Another")
    tenant.make_codes(1)
    filters = [
        "--campaign",
        campaign["id"],
        "--issuer",
        "Another",
        "--status",
        "active",
        "--project",
        tenant.project_id,
    ]
    filters += ["--created-from", "2020-01-01T00:00:00Z", "--created-to", "2099-01-01T00:00:00Z"]
    page = answered(tenant.run("codes", "list", *filters, "--limit", "2", "--json"))
    rest = answered(tenant.run("codes", "list", *filters, "--cursor", page["next_cursor"], "--json"))
    seen = [code["xr_id"] for code in [*page["data"], *rest["data"]]]
    assert sorted(seen) == sorted(code["xr_id"] for code in codes)
    assert rest["next_cursor"] is None

    table = tenant.run("codes", "list", *filters, "--limit", "2")
    assert table.status == 0
    assert all(code["broadcast_frame"] in table.out for code in page["data"])
    assert table.err.startswith("more: --cursor ")
    assert answered(tenant.run("codes", "list", "--status", "revoked", "--json"))["data"] == []


def test_a_code_is_shown_with_its_intent(tenant: Tenant) -> None:
    """An issuer's text cannot drive the terminal."""
    intent = {"type": "link", "action": "open", "resource": {"title": "\x1b[2J \x9b31m \u202eevil Grüße [bold]"}}
    (code,) = tenant.make_codes(1, intent=intent, issuer="[red]Radio[/]")
    done = tenant.run("codes", "show", code["xr_id"], "--project", tenant.project_id)
    assert done.status == 0
    assert all(char.isprintable() or char == "\n" for char in done.out)
    assert "Grüße [bold]" in done.out
    assert "[red]Radio[/]" in done.out
    shown = answered(tenant.run("codes", "show", code["xr_id"], "--json"))
    assert shown["intent"] == intent
    assert "\x9b" not in tenant.run("codes", "show", code["xr_id"], "--json").out


def test_one_code_is_revoked_and_again(tenant: Tenant) -> None:
    (code,) = tenant.make_codes(1)
    for _ in range(2):
        done = tenant.run("codes", "revoke", code["xr_id"])
        assert (done.status, done.out) == (0, f"{code['xr_id']} is revoked\n")


def test_one_code_of_another_project_than_the_named_one_is_left_alone(tenant: Tenant, tmp_path: Path) -> None:
    (code,) = tenant.make_codes(1)
    wanted = {"organization_id": tenant.organization_id, "name": "Evening show"}
    answer = tenant.service.client.post("/v1/projects", json=wanted)
    other = ["--project", answer.raise_for_status().json()["id"]]
    out = tmp_path / "jingle.wav"
    for command in (("revoke",), ("wav", "--out", str(out))):
        done = tenant.run("codes", *command, code["xr_id"], *other, key=OPERATOR_TOKEN)
        assert done.refusal.startswith("code_not_found (404)")
    assert not out.exists()
    own = ["--project", tenant.project_id]
    assert tenant.run("codes", "wav", code["xr_id"], "--out", str(out), *own).out == f"{out}\n"
    assert [frame.text for frame in hear(out)] == [code["broadcast_frame"]]
    assert tenant.run("codes", "revoke", code["xr_id"], *own).out == "1 revoked now, 0 already revoked or expired\n"


def test_several_codes_are_revoked_together(tenant: Tenant) -> None:
    ids = [code["xr_id"] for code in tenant.make_codes(3)]
    project = ["--project", tenant.project_id]
    refused = tenant.run("codes", "revoke", *ids, UNKNOWN, *project)
    assert refused.refusal.startswith("code_not_found (404)")
    assert tenant.answer("/v1/codes", status="revoked")["data"] == []
    done = tenant.run("codes", "revoke", *ids[:2], *project)
    assert done.out == "2 revoked now, 0 already revoked or expired\n"
    counts = answered(tenant.run("codes", "revoke", *ids, *project, "--json"))
    assert counts == {"requested_count": 3, "revoked_count": 1, "unchanged_count": 2}


def test_a_wav_is_written_that_can_be_heard(tenant: Tenant, tmp_path: Path) -> None:
    (code,) = tenant.make_codes(1)
    out = tmp_path / "jingle.wav"
    done = tenant.run("codes", "wav", code["xr_id"], "--protocol", "5", "--out", str(out))
    assert (done.status, done.out, done.err) == (0, f"{out}\n", "")
    assert [frame.text for frame in hear(out)] == [code["broadcast_frame"]]
    assert [path.name for path in tmp_path.iterdir()] == ["jingle.wav"]


def test_a_wav_is_named_after_its_code_unless_a_name_is_given(
    tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = tenant.make_codes(1)
    monkeypatch.chdir(tmp_path)
    assert tenant.run("codes", "wav", code["xr_id"]).out == f"{code['xr_id']}.wav\n"
    assert [path.name for path in tmp_path.iterdir()] == [f"{code['xr_id']}.wav"]


def test_several_wavs_come_as_a_zip(tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    ids = [code["xr_id"] for code in tenant.make_codes(3)]
    out = tmp_path / "bundle.zip"
    done = tenant.run("codes", "wav", *ids, "--project", tenant.project_id, "--out", str(out))
    assert done.status == 0
    assert "Rendering" in done.err
    with zipfile.ZipFile(out) as archive:
        assert archive.namelist() == [f"{xr_id}.wav" for xr_id in ids]
        assert archive.testzip() is None


def test_a_bundle_that_breaks_off_leaves_no_file(tenant: Tenant, tmp_path: Path) -> None:
    ids = [code["xr_id"] for code in tenant.make_codes(3)]
    out = tmp_path / "bundle.zip"
    out.write_text("the one before")
    arguments = ("codes", "wav", *ids, "--project", tenant.project_id, "--out", str(out), "--force")
    with FaultyProxy(tenant.service.url, *["half an answer"] * 20) as proxy:  # type: ignore[list-item]  # a list of texts, each a fault
        done = tenant.run(*arguments, url=proxy.url)
    assert "did not answer completely" in done.refusal
    assert [path.name for path in tmp_path.iterdir()] == ["bundle.zip"]
    assert out.read_text() == "the one before"


def test_a_bundle_that_breaks_off_is_requested_again(tenant: Tenant, tmp_path: Path) -> None:
    ids = [code["xr_id"] for code in tenant.make_codes(3)]
    out = tmp_path / "bundle.zip"
    with FaultyProxy(tenant.service.url, "half an answer") as proxy:
        done = tenant.run("codes", "wav", *ids, "--project", tenant.project_id, "--out", str(out), url=proxy.url)
    assert done.status == 0
    with zipfile.ZipFile(out) as archive:
        assert archive.testzip() is None


def test_a_file_that_is_there_is_replaced_only_by_force(tenant: Tenant, tmp_path: Path) -> None:
    (code,) = tenant.make_codes(1)
    out = tmp_path / "jingle.wav"
    out.write_text("the one before")
    wav = ("codes", "wav", code["xr_id"], "--out", str(out))
    assert tenant.run(*wav).refusal == f"{out} already exists; --force overwrites it"
    assert out.read_text() == "the one before"
    assert tenant.run(*wav, "--force").out == f"{out}\n"
    assert [frame.text for frame in hear(out)] == [code["broadcast_frame"]]


def test_a_revoked_code_is_not_rendered(tenant: Tenant, tmp_path: Path) -> None:
    (code,) = tenant.make_codes(1)
    tenant.service.revoke(code)
    done = tenant.run("codes", "wav", code["xr_id"], "--out", str(tmp_path / "x.wav"))
    assert done.refusal.startswith("code_not_active (409)")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_to_is_one_line(tenant: Tenant, tmp_path: Path) -> None:
    (code,) = tenant.make_codes(1)
    done = tenant.run("codes", "wav", code["xr_id"], "--out", str(tmp_path / "none" / "x.wav"))
    assert done.refusal.endswith("cannot be written: No such file or directory")
    done = tenant.run("codes", "wav", code["xr_id"], "--out", ".")
    assert done.refusal == ". cannot be written: it is a directory"


@pytest.fixture
def data_dir(tenant: Tenant, tmp_path: Path) -> Path:
    """What an `up` leaves."""
    up = {"base_url": tenant.service.url, "operator_token": OPERATOR_TOKEN}
    (tmp_path / "up.json").write_text(json.dumps(up))
    return tmp_path


def test_a_running_up_is_called_as_its_operator(tenant: Tenant, data_dir: Path) -> None:
    done = run("codes", "list", "--organization", tenant.organization_id, "--data-dir", str(data_dir), "--json")
    assert answered(done) == {"data": [], "next_cursor": None}


def test_a_key_file_comes_before_the_environment_and_that_before_the_data_dir(
    tenant: Tenant, data_dir: Path, tmp_path: Path
) -> None:
    wrong = "xak_" + "w" * 43
    file = tmp_path / "key"
    file.write_text(f"{tenant.key}\n")
    file.chmod(0o600)
    listing = ["codes", "list", "--organization", tenant.organization_id, "--json"]
    given = {"API_KEY": wrong}
    assert answered(run(*listing, "--key-file", str(file), "--base-url", tenant.service.url, settings=given))
    by_environment = run(*listing, "--data-dir", str(data_dir), settings=given)
    assert by_environment.refusal.startswith("unauthenticated (401)")
    assert wrong not in by_environment.err


def test_without_a_key_nobody_is_called(tenant: Tenant) -> None:
    done = run("codes", "list", "--organization", tenant.organization_id)
    assert done.refusal == "no credential was given: set SOUNDMARK_API_KEY, or give --key-file or --data-dir"


def failures(tenant: Tenant, tmp_path: Path) -> Iterator[tuple[Done, str]]:
    """Each way not to get through, and how its line ends."""
    listing = ["codes", "list", "--organization", tenant.organization_id]
    settings = {"API_KEY": tenant.key}
    yield (
        run(*listing, "--base-url", "http://127.0.0.1:9", settings=settings),
        "(connection refused). Start it, or name another with --base-url or --data-dir.",
    )
    yield run(*listing, "--base-url", "http://example.org", settings=settings), "loopback addresses only."
    yield (
        run(*listing, settings={**settings, "BASE_URL": "ftp://x"}),
        "SOUNDMARK_BASE_URL: must be an http or https URL",
    )
    yield run(*listing, settings={"API_KEY": "two words"}), "printable ASCII characters without spaces"
    yield run(*listing, "--key-file", str(tmp_path / "none")), "cannot be read: No such file or directory"
    yield run(*listing, "--data-dir", str(tmp_path / "none")), "no `soundmark up` is running there"
    for name in ("broken", "spaced"):
        (tmp_path / name).touch(mode=0o600)
    (tmp_path / "broken").write_bytes(b"\xff\xfe")
    yield run(*listing, "--key-file", str(tmp_path / "broken")), "does not contain a key"
    (tmp_path / "spaced").write_text("two words")
    yield run(*listing, "--key-file", str(tmp_path / "spaced")), "printable ASCII characters without spaces."


def test_whatever_keeps_it_from_calling_is_one_line_without_the_key(tenant: Tenant, tmp_path: Path) -> None:
    for done, said in failures(tenant, tmp_path):
        assert done.refusal.endswith(said)
        assert tenant.key not in done.err
        assert "two words" not in done.err


def test_what_the_service_refuses_is_one_line_with_its_code(tenant: Tenant) -> None:
    done = tenant.run("codes", "show", UNKNOWN)
    assert done.refusal.startswith("code_not_found (404): ")
    assert "[request " in done.refusal
    past = tenant.run("codes", "issue", *tenant.issuing[:-2], "--expires-at", "2020-01-01T00:00:00Z")
    assert past.refusal.startswith("validation_failed (422): ")
    assert "body /expires_at" in past.refusal
    assert "--idempotency-key" not in past.refusal
    deep = json.dumps({"type": "t", "action": "a", "resource": {"x": 2**60}})
    options = [*tenant.issuing[:4], "--expires-in", "1h", "--intent", deep]
    assert "JSON" in tenant.run("codes", "issue", *options).err


@pytest.mark.parametrize(
    "arguments",
    [
        ("issue",),
        ("issue", "--expires-in", "1h", "--expires-at", "2099-01-01T00:00:00Z"),
        ("issue", "--expires-in", "1 hour"),
        ("issue", "--expires-at", "tomorrow"),
        ("issue", "--expires-at", "2099-01-01T00:00:00"),
        ("issue", "--expires-in", "1h", "--count", "0"),
        ("issue", "--expires-in", "1h", "--idempotency-key", "short"),
        ("issue", "--expires-in", "1h", "--intent", "{"),
        ("issue", "--expires-in", "1h", "--intent", "{}"),
        ("issue", "--expires-in", "1h", "--intent", '{"type": "t", "action": "a", "resource": {}, "x": 1}'),
        ("issue", "--expires-in", "1h", "--intent", '{"type": "t", "action": "a", "resource": []}'),
        ("list", "--limit", "101"),
        ("list", "--status", "gone"),
        ("show",),
        ("revoke",),
        ("revoke", "xr_1", "xr_1", "--project", "prj_1"),
        ("wav", "xr_1", "--protocol", "2"),
        ("wav", *(f"xr_{number}" for number in range(101)), "--project", "prj_1"),
    ],
)
def test_wrong_usage_is_status_2_and_calls_nobody(arguments: tuple[str, ...]) -> None:
    intent = () if "--intent" in arguments else ("--intent", json.dumps(INTENT))
    needed = ("--project", "prj_1", "--issuer", "R", *intent) if arguments[0] == "issue" else ()
    done = CliRunner().invoke(codes.app, [*arguments, *needed, "--organization", "org_1"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Usage: " in done.stderr


def test_a_key_is_not_taken_from_the_command_line() -> None:
    """Every process of the machine can read another's arguments."""
    for group in ("codes", "campaigns"):
        assert "--key " not in run(group, "list", "--help").out
    assert not [name for name in os.environ if name == "SOUNDMARK_API_KEY"]
