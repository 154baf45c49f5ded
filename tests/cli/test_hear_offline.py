"""`soundmark hear --pack`: what a pack answers while the service cannot be reached."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.tenancy.tenant import INTENT

from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp

from .conftest import Service, run

NOWHERE = ("--base-url", "http://127.0.0.1:9")
OURS, STRANGERS = (SigningKey.from_seed(f"sig_{name:022}", name.to_bytes(32)) for name in (1, 2))


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


def make_pack_at(code: dict[str, Any], file: str, *, key: SigningKey = OURS, **changes: Any) -> dict[str, Any]:
    """Write a pack that the key signed, made now and valid for an hour, except for `changes`."""
    now = datetime.now(UTC)
    named = {"xr_id": code["xr_id"], "intent": INTENT, "expires_at": code["expires_at"]}
    times = {"issued_at": now, "valid_until": now + timedelta(hours=1)}
    unsigned = {
        "version": 1,
        "format": "svc-offline-pack-v1",
        "pack_id": f"opk_{file:A<22.3}",
        "project_id": code["project_id"],
        "campaign_id": None,
        "codes": [{**named, "token_digest": code["signed_code"]["token_digest"]}],
        "key_id": key.key_id,
        **changes,
        **{name: format_timestamp(changes.get(name, at)) for name, at in times.items()},
    }
    pack = {**unsigned, "signature": base64url.encode(key.sign(canonicalize(unsigned)))}
    Path(file).write_text(json.dumps(pack))
    return pack


def test_no_pack_answers_before_it_was_made_or_after_it_ended_or_after_a_clock_was_set_back(
    code: dict[str, Any], recording: str, subtests: pytest.Subtests
) -> None:
    """The command keeps nothing, so what it knows of time is what its packs say: one from the future silences all."""
    jwk = {"kty": "OKP", "crv": "Ed25519", "kid": OURS.key_id, "x": base64url.encode(OURS.public_key)}
    Path("ours.json").write_text(json.dumps(jwk))
    now, minute, hour = datetime.now(UTC), timedelta(minutes=1), timedelta(hours=1)
    elsewhere = {"project_id": "prj_" + "e" * 22, "codes": []}
    made = {
        "now": make_pack_at(code, "now"),
        "ended": make_pack_at(code, "ended", issued_at=now - hour, valid_until=now),
        "older": make_pack_at(code, "older", issued_at=now - hour, valid_until=now + hour),
        "silent": make_pack_at(code, "silent", issued_at=now - 30 * minute, valid_until=now - minute, codes=[]),
        "tolerated": make_pack_at(code, "tolerated", issued_at=now + minute),
        "early": make_pack_at(code, "early", issued_at=now + 10 * minute),
        "later": make_pack_at(code, "later", issued_at=now + 10 * minute, **elsewhere),
    }
    for files, answering in (
        ("now", "now"),
        ("ended", None),
        ("older ended", "older"),
        ("older now", "now"),
        ("now older", "now"),
        ("older silent", None),
        ("silent older now", "now"),
        ("tolerated", "tolerated"),
        ("early", None),
        ("now later", None),
        ("later now", None),
    ):
        with subtests.test(files):
            packs = [word for file in files.split() for word in ("--pack", file)]
            done = run("hear", recording, *packs, "--keys", "ours.json", *NOWHERE)
            begin = f"no verified intent for {code['broadcast_frame']}: "
            if answering is None:
                assert done.out == f"heard {code['broadcast_frame']}\n"
                assert done.refusal.startswith(f"{begin}network: ")
            else:
                pack = made[answering]
                assert f"from pack {pack['pack_id']}, signed by {OURS.key_id}" in done.out
                assert done.refusal == f"{begin}an offline pack answered, as of {pack['issued_at']}"


def test_a_pack_of_another_key_or_with_any_byte_altered_refuses_the_whole_command(
    service: Service,
    code: dict[str, Any],
    recording: str,
    keys: tuple[str, str],
    nowhere: Path,
    subtests: pytest.Subtests,
) -> None:
    """Whatever else is given: a genuine pack beside it does not answer, and nothing was heard yet."""
    pack = make_pack(service, code, nowhere / "pack.json")
    make_pack_at(code, "unknown.json", key=STRANGERS)
    make_pack_at(code, "claimed.json", key=SigningKey.from_seed(pack["key_id"], bytes([9]) * 32))
    text = (nowhere / "pack.json").read_bytes()
    for place in (1, text.index(b"opk_") + 9, text.index(b"valid_until") + 15, text.index(b"xr_") + 9, len(text) - 4):
        (nowhere / f"{place}.json").write_bytes(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
    expected = {"unknown.json": "key_unknown at key_id: ", "claimed.json": "signature_invalid at signature: "}
    for file in sorted(nowhere.glob("*.json")):
        if file.name in {"keys.json", "pack.json"}:
            continue
        with subtests.test(file.name):
            done = run("hear", recording, "--pack", "pack.json", "--pack", file.name, *keys, *NOWHERE)
            assert done.out == ""
            assert done.refusal.startswith(f"{file.name} is not genuine: {expected.get(file.name, '')}")
