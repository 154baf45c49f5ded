"""`soundmark hear --pack`: what a pack answers while the service cannot be reached."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.tenancy.tenant import INTENT

from .conftest import Service, run

NOWHERE = ("--base-url", "http://127.0.0.1:9")


@pytest.fixture
def code(service: Service) -> dict[str, Any]:
    """An issued Code."""
    return service.make_code()


@pytest.fixture
def recording(service: Service, code: dict[str, Any], nowhere: Path) -> str:
    """A recording of the Code."""
    (nowhere / "recording.wav").write_bytes(service.sound_of(code))
    return "recording.wav"


@pytest.fixture
def keys(service: Service, nowhere: Path) -> tuple[str, str]:
    """The option that names the kept key history."""
    (nowhere / "keys.json").write_bytes(service.client.get("/v1/keys/history").raise_for_status().content)
    return "--keys", "keys.json"


def make_pack(service: Service, code: dict[str, Any], file: Path) -> dict[str, Any]:
    query = {name: code[name] for name in ("organization_id", "project_id")}
    body = {"campaign_id": None, "valid_for_s": 3600}
    answer = service.client.post("/v1/offline-packs", params=query, json=body).raise_for_status()
    file.write_bytes(answer.content)
    pack: dict[str, Any] = answer.json()
    return pack


def test_a_pack_answers_without_the_service_says_as_of_when_and_is_not_verified(
    service: Service, code: dict[str, Any], recording: str, keys: tuple[str, str], nowhere: Path
) -> None:
    pack = make_pack(service, code, nowhere / "pack.json")
    with_pack = ("hear", recording, "--pack", "pack.json")

    offline = run(*with_pack, *keys, *NOWHERE)
    heard, named, as_of, *shown = offline.out.splitlines()
    assert (
        offline.refusal
        == f"no verified intent for {code['broadcast_frame']}: an offline pack answered, as of {pack['issued_at']}"
    )
    assert heard == f"heard {code['broadcast_frame']}"
    assert named == f"offline {code['xr_id']}, from pack {pack['pack_id']}, signed by {pack['key_id']}"
    assert as_of.startswith(f"as of {pack['issued_at']}, until {min(pack['valid_until'], code['expires_at'])}: ")
    assert json.loads("\n".join(shown)) == INTENT

    online = run(*with_pack, "--base-url", service.url)
    assert online.status == 0
    assert f"verified {code['xr_id']}" in online.out
    assert "offline" not in online.out
    service.revoke(code)
    assert "code_unavailable" in run(*with_pack, *keys, "--base-url", service.url).refusal


def test_a_newer_pack_that_leaves_the_code_out_silences_the_older(
    service: Service, code: dict[str, Any], recording: str, keys: tuple[str, str], nowhere: Path
) -> None:
    make_pack(service, code, nowhere / "old.json")
    service.revoke(code)
    make_pack(service, code, nowhere / "new.json")
    for files in (("old.json", "new.json"), ("new.json", "old.json")):
        packs = [word for file in files for word in ("--pack", file)]
        assert "network" in run("hear", recording, *packs, *keys, *NOWHERE).refusal
    assert "offline" in run("hear", recording, "--pack", "old.json", *keys, *NOWHERE).out


def test_an_altered_pack_missing_keys_and_wrong_options_are_one_line(
    service: Service, code: dict[str, Any], recording: str, keys: tuple[str, str], nowhere: Path
) -> None:
    make_pack(service, code, nowhere / "pack.json")
    text = (nowhere / "pack.json").read_text()
    (nowhere / "altered.json").write_text(text.replace('"open"', '"oper"'))
    refusal = run("hear", recording, "--pack", "altered.json", *keys, *NOWHERE).refusal
    assert refusal.startswith("altered.json is not genuine: signature_invalid at signature: ")
    missing = run("hear", recording, "--pack", "missing.json", *keys, *NOWHERE).refusal
    assert missing == "missing.json cannot be read: No such file or directory"
    refusal = run("hear", recording, "--pack", "pack.json", *NOWHERE).refusal
    assert refusal.startswith("Nothing answers at")
    assert refusal.endswith("Without the service, --pack needs --keys")
    assert run("hear", recording, *keys, *NOWHERE).status == 2
