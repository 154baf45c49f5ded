"""`soundmark archive verify` and `soundmark certificate verify`: files from anybody."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.codes.measurements import make_measurement

from .conftest import answered, run
from .leaving_service import (
    CERTIFICATE,
    KEY_ID,
    PROJECT,
    LeavingService,
    make_archive,
    make_certificate,
    make_decode_certificate,
    make_key,
    make_pack,
    serving_leavers,
)


@pytest.fixture
def leaving() -> Iterator[LeavingService]:
    """A service that exports and deletes."""
    with serving_leavers() as service:
        yield service


@pytest.fixture
def archive(nowhere: Path) -> Path:
    """An archive file."""
    file = nowhere / "archive.json"
    file.write_bytes(make_archive())
    return file


@pytest.fixture
def certificate(nowhere: Path) -> Path:
    """A certificate file."""
    file = nowhere / "certificate.json"
    file.write_text(json.dumps(make_certificate(), indent=2))
    return file


@pytest.fixture
def keys(nowhere: Path) -> Path:
    """A file with the published keys."""
    file = nowhere / "keys.json"
    file.write_text(json.dumps({"keys": [make_key()]}))
    return file


def test_an_archive_is_verified_with_the_keys_of_a_service(
    archive: Path, nowhere: Path, keys: Path, leaving: LeavingService
) -> None:
    (nowhere / "up.json").touch(mode=0o600)
    (nowhere / "up.json").write_text(json.dumps({"base_url": leaving.url}))
    for service in (("--base-url", leaving.url), ("--data-dir", str(nowhere))):
        done = run("archive", "verify", str(archive), *service)
        assert (done.status, done.err) == (0, "")
        for text in (PROJECT, "svc-project-archive-v1", KEY_ID, f"the keys of {leaving.url}"):
            assert text in done.out
        assert run("archive", "verify", str(archive), *service, "--keys", str(keys)).status == 2
    assert leaving.requests == ["GET /v1/keys/history"] * 2


def test_an_archive_is_verified_with_keys_in_a_file_and_without_a_network(archive: Path, keys: Path) -> None:
    done = answered(run("archive", "verify", str(archive), "--keys", str(keys), "--json"))
    assert (done["subject_id"], done["keys_are_trusted"]) == (PROJECT, True)
    assert done["counts"]["codes"] == 0


@pytest.mark.parametrize("is_set", [False, True])
def test_a_plain_key_of_another_tool_does_as_well(archive: Path, nowhere: Path, *, is_set: bool) -> None:
    """It has `kid` and `x`, and not the members with which a service publishes it."""
    plain = {name: value for name, value in make_key().items() if name in {"kid", "x"}}
    (nowhere / "plain.json").write_text(json.dumps({"keys": [plain]} if is_set else plain))
    done = answered(run("archive", "verify", str(archive), "--keys", "plain.json", "--json"))
    assert (done["subject_id"], done["keys_are_trusted"]) == (PROJECT, True)


def test_without_an_option_the_keys_are_those_inside_and_the_command_says_so(archive: Path) -> None:
    done = run("archive", "verify", str(archive))
    assert done.status == 0
    assert "the keys inside the file" in done.out
    assert done.err == "verified with the keys inside the file: it is consistent, but anyone could have created it\n"
    assert answered(run("archive", "verify", str(archive), "--json"))["keys_are_trusted"] is False


def test_a_file_that_is_not_genuine_is_status_1_and_the_first_fault(archive: Path, keys: Path) -> None:
    archive.write_bytes(make_archive().replace(b"Morning", b"Evening"))
    for options in ((), ("--keys", str(keys))):
        refused = run("archive", "verify", str(archive), *options)
        assert refused.refusal.startswith(f"{archive} is not genuine: digest_mismatch at seal.digest: ")
        assert refused.out == ""


def test_a_certificate_is_verified_with_the_keys_of_a_service(certificate: Path, leaving: LeavingService) -> None:
    for settings in ({}, {"BASE_URL": leaving.url}):
        chosen = ("--base-url", leaving.url) if not settings else ()
        done = run("certificate", "verify", str(certificate), *chosen, settings=settings)
        assert (done.status, done.err) == (0, "")
        for text in (CERTIFICATE, f"project {PROJECT}", "2026-11-20 10:00:07Z", "Spent proofs", "Remaining"):
            assert text in done.out


def test_a_certificate_is_verified_with_keys_in_a_file(certificate: Path, keys: Path) -> None:
    done = answered(run("certificate", "verify", str(certificate), "--keys", str(keys), "--json"))
    assert (done["certificate_id"], done["deleted"]["core"]["codes"]) == (CERTIFICATE, 3)


def test_an_altered_certificate_is_refused(certificate: Path, keys: Path) -> None:
    certificate.write_text(json.dumps({**make_certificate(), "requested_at": "2026-11-20T10:00:00.001Z"}))
    refused = run("certificate", "verify", str(certificate), "--keys", str(keys))
    assert refused.refusal.startswith(f"{certificate} is not genuine: signature_invalid at signature: ")


def test_a_decode_certificate_states_its_weakest_repetition(nowhere: Path, keys: Path) -> None:
    """Text from outside is shown without what could control a terminal."""
    body = make_measurement(file_name="m\u202eorning.wav", tool={"name": "\x1b[2Jtool", "version": "1"})
    file = nowhere / "decoded.json"
    file.write_text(json.dumps(make_decode_certificate(body)))
    verify = ("certificate", "verify", str(file), "--keys", str(keys))

    done = run(*verify)
    assert (done.status, done.err) == (0, "")
    for text in ("Repetitions", "at 12.0 s, margin 9.4 dB", "mp3 192 kbit/s", "0 of 1 heard", body["file_sha256"]):
        assert text in done.out
    assert not {"\x1b", "\u202e"} & set(done.out)
    described = answered(run(*verify, "--json"))
    assert (described["repetitions"], described["xr_id"]) == (body["repetitions"], "xr_0123456789abcdefABCDEF")

    file.write_text(file.read_text().replace("9.4", "9.5"))
    assert run(*verify).refusal.startswith(f"{file} is not genuine: signature_invalid at signature: ")
    file.write_text(file.read_text().replace("dcc_", "dct_"))
    assert run(*verify).refusal.startswith(f"{file} is not genuine: wrong_shape at certificate_id: ")


def test_an_offline_pack_states_its_end_and_how_many_codes_it_has(nowhere: Path, keys: Path) -> None:
    file, pack = nowhere / "pack.json", make_pack()
    file.write_text(json.dumps(pack))
    verify = ("certificate", "verify", str(file), "--keys", str(keys))

    done = run(*verify)
    assert (done.status, done.err) == (0, "")
    for text in (pack["pack_id"], pack["project_id"], "Codes", "Valid until"):
        assert text in done.out
    described = answered(run(*verify, "--json"))
    assert described["codes"] == 0
    for name in ("pack_id", "project_id", "campaign_id", "issued_at", "valid_until", "key_id"):
        assert described[name] == pack[name]

    file.write_text(file.read_text().replace("T16:00", "T17:00"))
    assert run(*verify).refusal.startswith(f"{file} is not genuine: signature_invalid at signature: ")


@pytest.mark.parametrize("kind", ["archive", "certificate"])
def test_what_cannot_be_read_is_one_clear_line(kind: str, nowhere: Path, keys: Path, leaving: LeavingService) -> None:
    with_keys = ("--keys", str(keys))
    assert run(kind, "verify", "missing", *with_keys).refusal == "missing cannot be read: No such file or directory"
    assert run(kind, "verify", str(nowhere), *with_keys).refusal == f"{nowhere} cannot be read: Is a directory"
    (nowhere / "empty").touch()
    assert "is not genuine" in run(kind, "verify", "empty", *with_keys).refusal
    (nowhere / "wrong.json").write_text("{}")
    no_keys = run(kind, "verify", "empty", "--keys", "wrong.json").refusal
    assert no_keys == "wrong.json contains no keys: it must be a JWK, a JWK Set, or the answer of /v1/keys/history"
    both = run(kind, "verify", "empty", *with_keys, "--base-url", leaving.url)
    assert (both.status, both.out) == (2, "")
    assert run(kind, "verify", "empty", "--base-url", "http://127.0.0.1:9").refusal == (
        "Nothing answers at http://127.0.0.1:9 (connection refused). "
        "Start it, name another with --base-url, or give the keys with --keys."
    )
    assert "https" in run(kind, "verify", "empty", "--base-url", "http://example.org").refusal
