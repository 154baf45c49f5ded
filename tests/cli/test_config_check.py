"""`soundmark config check` of a Core where people sign in: it reads from the identity provider and names its faults."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from support.api.core_settings import MASTER_KEY
from support.identity.oidc_issuer import DISCOVERY, JWKS, OidcIssuer, running_issuer
from support.outside.misbehaving_server import answer
from support.outside.private_authority import make_authority, tls_server
from support.processes.fake_clock import FakeClock

from soundmark.kit.crypto.signed_notes import COSIGNATURE, ED25519, VerifierKey

from .conftest import Done, run


@pytest.fixture
async def issuer(clock: FakeClock) -> AsyncIterator[OidcIssuer]:
    """The issuer of the tokens or keys under test."""
    async with running_issuer(clock) as running:
        yield running


async def check(issuer_url: str, *arguments: str, **changes: str) -> Done:
    settings = {
        "BASE_URL": "http://core.test",
        "CORE_DATABASE_URL": "postgresql://core@127.0.0.1:1/core",
        "MASTER_KEY": MASTER_KEY,
        "AUDIO_URL": "http://127.0.0.1:1",
        "AUDIO_CREDENTIAL": "a-credential-of-audio",
        "AUDIENCE_URL": "http://127.0.0.1:1",
        "AUDIENCE_CREDENTIAL": "a-credential-of-audience",
        "OIDC_ISSUER": issuer_url,
        "OIDC_CLIENT_ID": "console",
        **changes,
    }
    return await asyncio.to_thread(run, "config", "check", "core", *arguments, settings=settings)


async def test_every_address_that_leads_to_the_metadata_of_the_machine_is_named() -> None:
    """Whatever a process connects to: people, providers, private components, databases."""
    host = "169.254.169.254"
    done = await check(
        f"https://{host}",
        BASE_URL=f"https://{host}",
        CORE_DATABASE_URL=f"postgresql://core@db.example,{host}/core",
        RATE_LIMIT_URL=f"redis://{host}",
        SMTP_HOST=host,
        **{f"{name}_URL": f"https://{host}" for name in ("AUDIO", "AUDIENCE", "CARD_API", "LOCAL_API", "CONSOLE")},
        **{f"{name}_BASE_URL": f"https://{host}" for name in ("ACCOUNTING", "SUPPORT_DESK")},
    )
    refused = [line.partition(": ") for line in done.err.splitlines() if "metadata server" in line]
    names = {name.removeprefix("soundmark:").strip().removeprefix("SOUNDMARK_") for name, *_ in refused}
    assert (done.status, names) == (
        1,
        {
            *("OIDC_ISSUER", "BASE_URL", "CORE_DATABASE_URL", "RATE_LIMIT_URL", "SMTP_HOST", "AUDIO_URL"),
            *("AUDIENCE_URL", "CARD_API_URL", "LOCAL_API_URL", "CONSOLE_URL", "ACCOUNTING_BASE_URL"),
            "SUPPORT_DESK_BASE_URL",
        },
    )


async def test_an_issuer_that_answers_as_configured_is_ok(issuer: OidcIssuer) -> None:
    assert await check(issuer.url) == Done(0, "ok\n", "")
    assert issuer.requested == [DISCOVERY, JWKS]


@pytest.mark.parametrize("named", ["https://other.example/realms/x", None])
async def test_both_issuers_are_named_where_they_differ(issuer: OidcIssuer, named: str | None) -> None:
    issuer.discovery = {"issuer": named}
    assert (await check(issuer.url)).refusal == (
        f"SOUNDMARK_OIDC_ISSUER is {issuer.url}, but the discovery document there names {named or 'no issuer'}: "
        "the two must be identical"
    )


async def test_a_slash_at_the_end_is_a_difference(issuer: OidcIssuer) -> None:
    assert (
        f"{issuer.url}/, but the discovery document there names {issuer.url}:"
        in (await check(issuer.url + "/")).refusal
    )


FAULTS: dict[str, Callable[[OidcIssuer], Any]] = {
    "it does not answer with status 200": lambda issuer: issuer.behaviour.update(
        {DISCOVERY: answer(b"{}", status="404 Gone")}
    ),
    "its response is not JSON": lambda issuer: issuer.behaviour.update({JWKS: answer(b"<html>")}),
    "its response is not a JSON object": lambda issuer: issuer.behaviour.update(
        {JWKS: answer(json.dumps([]).encode())}
    ),
    "names no https URL for its keys": lambda issuer: issuer.discovery.update(jwks_uri="http://192.0.2.1/keys"),
    "publishes no key that verifies access tokens": lambda issuer: setattr(issuer, "jwks", {"keys": []}),
}


@pytest.mark.parametrize("words", FAULTS)
async def test_an_issuer_without_keys_is_named_with_the_reason(issuer: OidcIssuer, words: str) -> None:
    FAULTS[words](issuer)
    refusal = (await check(issuer.url)).refusal
    assert refusal.startswith(
        f"SOUNDMARK_OIDC_ISSUER is {issuer.url}, but no keys can be fetched from that identity provider: "
    )
    assert words in refusal


async def test_offline_there_is_no_request(issuer: OidcIssuer) -> None:
    async with issuer.down():
        assert (await check(issuer.url)).refusal.endswith("from that identity provider: it cannot be reached")
        assert await check(issuer.url, "--offline") == Done(0, "ok\n", "")


async def test_a_private_authority_is_trusted_where_the_setting_names_it(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, "127.0.0.1")
    async with tls_server(authority, answer(b"[]")) as server:
        assert "it cannot be reached" in (await check(server.url)).refusal
        trusting = await check(server.url, EXTRA_CA_FILE=str(authority.ca_file))
    assert "its response is not a JSON object" in trusting.refusal


async def test_a_file_of_authorities_that_cannot_be_read_is_named(issuer: OidcIssuer, tmp_path: Path) -> None:
    done = await check(issuer.url, EXTRA_CA_FILE=str(tmp_path / "missing.pem"))
    assert (done.status, done.err.splitlines()[0]) == (
        1,
        "SOUNDMARK_EXTRA_CA_FILE: cannot be read: No such file or directory",
    )


def make_vkey(number: int, key_type: int = COSIGNATURE) -> VerifierKey:
    return VerifierKey(f"witness-{number}.example", key_type, bytes([number]) * 32)


FIRST, SECOND = f"{make_vkey(1)} https://one.example/w", f"{make_vkey(2)} http://127.0.0.1:8084 # ours"
WRONG_WITNESSES: dict[str, tuple[str, str]] = {
    "no URL": (str(make_vkey(1)), "line 1: is not a vkey, a space and a URL"),
    "three words": (f"{FIRST} more", "line 1: is not a vkey, a space and a URL"),
    "no key": ("https://one.example one.example", "line 1: its key is not a vkey"),
    "a key of a log": (
        f"\n{make_vkey(1, ED25519)} https://one.example",
        "line 2: its key is a vkey of another type than 04",
    ),
    "a post-quantum key": (
        f"{make_vkey(1, 6)} https://one.example",
        "line 1: its key is a vkey of another type than 04",
    ),
    "a key of another id": (
        FIRST.replace(make_vkey(1).id.hex(), make_vkey(2).id.hex()),
        "line 1: its key is a vkey whose id does not belong to its key",
    ),
    "one key twice": (f"{FIRST}\n# {SECOND}\n{SECOND}\n{FIRST}", "line 4: names the key of another line"),
    "one key under two names": (
        f"{FIRST}\n{VerifierKey('other.example', COSIGNATURE, bytes([1]) * 32)} https://two.example",
        "line 2: names the key of another line",
    ),
    "http to elsewhere": (f"{make_vkey(1)} http://one.example", "line 1: must be"),
    "the metadata of the machine": (f"{make_vkey(1)} https://169.254.169.254", "line 1: must not"),
    "credentials": (f"{make_vkey(1)} https://me:word@one.example", "line 1: must be a URL without credentials"),
    "too large": ("#" * (64 * 1024 + 1), "is larger than 64 KiB"),
}


async def test_each_fault_of_the_file_of_witnesses_is_named(
    issuer: OidcIssuer, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    file = tmp_path / "witnesses"
    for name, (content, fault) in WRONG_WITNESSES.items():
        with subtests.test(name):
            file.write_text(content)
            done = await check(issuer.url, TRANSPARENCY_WITNESSES=str(file))
            assert done.status == 1
            assert done.err.startswith(f"SOUNDMARK_TRANSPARENCY_WITNESSES: {fault}"), done
            assert "word" not in done.err, "a credential is not repeated"
    for path, fault in {
        "witnesses": "must be an absolute path",
        str(tmp_path / "none"): "cannot be read: No such",
    }.items():
        with subtests.test(path):
            done = await check(issuer.url, TRANSPARENCY_WITNESSES=path)
            assert done.status == 1
            assert done.err.startswith(f"SOUNDMARK_TRANSPARENCY_WITNESSES: {fault}"), done


async def test_a_quorum_of_more_witnesses_than_there_are_is_refused(
    issuer: OidcIssuer, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    file = tmp_path / "witnesses"
    file.write_text(f"# Ours and theirs.\n{FIRST}\n\n{SECOND}\n".ljust(64 * 1024, "#"))
    both = {"TRANSPARENCY_WITNESSES": str(file)}
    for quorum in (0, 1, 2):
        with subtests.test(quorum):
            assert await check(issuer.url, **both, TRANSPARENCY_QUORUM=str(quorum)) == Done(0, "ok\n", "")
    fault = "SOUNDMARK_TRANSPARENCY_QUORUM: is more than the witnesses in SOUNDMARK_TRANSPARENCY_WITNESSES"
    for given in ({**both, "TRANSPARENCY_QUORUM": "3"}, {"TRANSPARENCY_QUORUM": "1"}):
        with subtests.test(given):
            done = await check(issuer.url, **given)
            assert (done.status, done.err.splitlines()[0]) == (1, fault)
    done = await check(issuer.url, TRANSPARENCY_QUORUM="-1")
    assert (done.status, done.err.partition(": ")[0]) == (1, "SOUNDMARK_TRANSPARENCY_QUORUM")


CONSOLE = {"CONSOLE_KEY": "A" * 43}


async def check_console(**given: str) -> Done:
    return await asyncio.to_thread(run, "config", "check", "console", settings=given)


async def test_a_console_needs_a_key_alone() -> None:
    assert await check_console(**CONSOLE) == Done(0, "ok\n", "")
    done = await check_console()
    assert done.err.splitlines()[0] == "SOUNDMARK_CONSOLE_KEY or SOUNDMARK_MASTER_KEY must be set"
    assert done.status == 1


async def test_the_provider_of_a_console_is_asked_too(issuer: OidcIssuer) -> None:
    given = {**CONSOLE, "OIDC_ISSUER": issuer.url, "OIDC_CLIENT_ID": "console"}
    assert await check_console(**given) == Done(0, "ok\n", "")
    assert issuer.requested == [DISCOVERY, JWKS]
    async with issuer.down():
        assert (await check_console(**given)).refusal.endswith("from that identity provider: it cannot be reached")
