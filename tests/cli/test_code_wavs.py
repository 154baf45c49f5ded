"""`soundmark codes wav`: one Code as a WAV, several as a ZIP."""

import zipfile
from pathlib import Path

import pytest
from soundmark_sdk import hear
from support.processes.faulty_proxy import FaultyProxy

from .conftest import Tenant


def test_a_wav_is_written_that_can_be_heard(tenant: Tenant, tmp_path: Path) -> None:
    (code,) = tenant.make_codes(1)
    out = tmp_path / "jingle\x1b[2J.wav"
    done = tenant.run("codes", "wav", code["xr_id"], "--protocol", "5", "--out", str(out))
    assert (done.status, done.out, done.err) == (0, f"{tmp_path}/jingle\\u001b[2J.wav\n", "")
    assert [frame.text for frame in hear(out)] == [code["broadcast_frame"]]
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


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


def test_an_existing_file_is_replaced_only_by_force(tenant: Tenant, tmp_path: Path) -> None:
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


def test_a_path_that_cannot_be_written_is_one_line(tenant: Tenant, tmp_path: Path) -> None:
    (code,) = tenant.make_codes(1)
    done = tenant.run("codes", "wav", code["xr_id"], "--out", str(tmp_path / "none" / "x.wav"))
    assert done.refusal.endswith(f"cannot be written: there is no folder {tmp_path / 'none'}")
    done = tenant.run("codes", "wav", code["xr_id"], "--out", ".")
    assert done.refusal == ". cannot be written: it is a directory"
