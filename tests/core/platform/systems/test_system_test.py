"""`POST /v1/platform/systems/{system}/test`: one use of a system with the settings that apply."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import pytest
from structlog.testing import capture_logs
from support.api.core_client import Answer, Api
from support.database.content import read_content
from support.database.rival import Rival
from support.outside.accounting import list_operations
from support.outside.mail_server import (
    PASSWORD,
    USERNAME,
    MailServer,
    configure_mail,
    make_certificate,
    running_mail_server,
)
from support.outside.misbehaving_server import answer, misbehaving_server, silent
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.secret_leaks import remember_secret
from support.tenancy.people import People
from support.tenancy.platform_settings import put_setting

from soundmark.core.domain.platform.system_test import SystemName, SystemTest, SystemTestCode
from soundmark.core.features.platform.systems import service
from soundmark.kit.text.timestamps import format_timestamp

# In what a system answers; nothing of it may come back.
PLANTED = "MARKplanted-by-the-other-system"
WRONG_KEY = "a-key-that-the-other-system-refuses"
remember_secret(PLANTED)
remember_secret(WRONG_KEY)
ADMINISTRATOR = {"realm_access": {"roles": ["svc_platform_admin"]}}
BY_SYSTEM = {"desk": "support_api_key", "accounting": "accounting_api_key", "card": "card_secret_key"}
NAMES = {
    "mail": "The mail server",
    "desk": "The support desk",
    "accounting": "The accounting system",
    "card": "The card provider",
}
READS = {"desk": "list_folders", "accounting": "find_invoices", "card": "list_prices"}


@pytest.fixture(autouse=True)
def _in_another_minute(clock: FakeClock) -> None:
    """Let each test begin with all its tests of systems, although they share a Core."""
    clock.advance(seconds=61)


@pytest.fixture
async def mail_server() -> AsyncIterator[MailServer]:
    """A mail server that keeps what it receives."""
    async with running_mail_server() as running:
        yield running


async def configure_url(rival: Rival, name: str, url: str) -> None:
    """Store a URL that the API refuses, because it is http."""
    await rival.run(
        "INSERT INTO platform_configuration (name, value, updated_at) VALUES (%s, %s, now())"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        *(name, f'"{url}"'),
    )


@pytest.fixture
async def systems(api: Api, card: RunningSandbox, desk: RunningSandbox, rival: Rival) -> RunningSandbox:
    """The sandbox as desk, accounting system and card provider of the platform."""
    assert card is desk
    await configure_url(rival, "accounting_base_url", desk.settings()["ACCOUNTING_BASE_URL"])
    assert (await put_setting(api, "accounting_api_key", desk.secret("ACCOUNTING_API_KEY"))).status == 200
    return desk


async def run_test(api: Api, system: str) -> Answer:
    return await api.post(f"/v1/platform/systems/{system}/test")


async def find_code(api: Api, system: str) -> str:
    """Return what a test found, whose sentence holds nothing that the system answered."""
    tested = await run_test(api, system)
    assert tested.status == 200, tested.body
    assert PLANTED not in tested.body.decode()
    assert tested.json["ok"] == (tested.json["code"] in {"answered", "mail_accepted", "sender_mail_accepted"})
    code: str = tested.json["code"]
    return code


def test_every_code_has_a_sentence_for_every_system(api: Api) -> None:
    now = api.clock.now()
    for system in get_args(SystemName):
        for code in get_args(SystemTestCode):
            reason = SystemTest(system, code, now).reason
            assert reason.endswith("."), (system, code)
            assert "{" not in reason, (system, code)


@pytest.mark.parametrize("system", get_args(SystemName))
async def test_a_system_without_settings_is_not_configured(api: Api, system: str) -> None:
    now = api.clock.freeze()
    tested = await run_test(api, system)
    found = tested.json
    assert found.pop("reason") == f"{NAMES[system]} is not configured: settings are missing."
    assert found == {
        "system": system,
        "ok": False,
        "code": "not_configured",
        "checked_at": format_timestamp(now),
    }


@pytest.mark.parametrize("system", [*READS])
async def test_a_system_that_works_is_read_once_and_nothing_is_stored(
    api: Api, systems: RunningSandbox, rival: Rival, system: str
) -> None:
    before = await read_content(rival)
    with capture_logs() as logs:
        assert await find_code(api, system) == "answered"
    assert [call["operation"] for call in await systems.calls(system)] == [READS[system]]
    assert await read_content(rival) == before
    entries = [each for each in logs if each["event"] == "platform_system_tested"]
    assert [(each["system"], each["code"], each["subject_id"]) for each in entries] == [
        (system, "answered", "operator")
    ]


@pytest.mark.parametrize("system", [*READS])
async def test_a_wrong_key_is_refused(api: Api, systems: RunningSandbox, system: str) -> None:
    assert (await put_setting(api, BY_SYSTEM[system], WRONG_KEY)).status == 200
    with capture_logs() as logs:
        assert await find_code(api, system) == "key_refused"
    assert len(await systems.calls(system)) == 1
    assert WRONG_KEY not in repr(logs)
    # The card provider's stand-in complains of a wrong key, which is what is tested.
    assert all("Invalid API Key" in complaint for complaint in await systems.complaints())
    await systems.control("/reset")


FAULTS = [
    ("server_error", "failing"),
    ("rate_limited", "limited"),
    ("down", "unreachable"),
    ("half_body", "unreachable"),
    ("redirect", "unexpected"),
    ("html", "unexpected"),
    ("html_as_json", "unexpected"),
    ("firewall", "unexpected"),
    ("wrong_object", "unexpected"),
]


@pytest.mark.parametrize("system", [*READS])
async def test_what_a_system_answers_instead_is_named_and_not_repeated(
    api: Api, systems: RunningSandbox, system: str, subtests: pytest.Subtests
) -> None:
    for kind, code in FAULTS:
        with subtests.test(kind=kind):
            api.clock.advance(seconds=61)  # A system is tested ten times a minute.
            before = len(await systems.calls(system))
            await systems.misbehave(system, kind, operation=READS[system])
            # To the card provider's client, a page with 403 is a refusal like any other.
            expected = "not_permitted" if (kind, system) == ("firewall", "card") else code
            assert await find_code(api, system) == expected
            assert len(await systems.calls(system)) == before + 1


@pytest.mark.parametrize(
    ("status", "code"),
    [("403 Forbidden", "not_permitted"), ("418 Teapot", "unexpected"), ("500 Internal Server Error", "failing")],
)
@pytest.mark.parametrize(("system", "url"), [("desk", "support_desk_base_url"), ("accounting", "accounting_base_url")])
@pytest.mark.usefixtures("systems")
async def test_an_error_that_holds_secrets_is_not_shown(
    api: Api, rival: Rival, system: str, url: str, status: str, code: str
) -> None:
    body = f'{{"error": {{"message": "{PLANTED}"}}, "message": "{PLANTED}"}}'.encode()
    async with misbehaving_server(answer(body, status=status)) as server:
        await configure_url(rival, url, server.url)
        with capture_logs() as logs:
            assert await find_code(api, system) == code
        assert len(server.requests) == 1
    assert PLANTED not in repr(logs)


@pytest.mark.parametrize("system", [*READS])
async def test_a_system_that_never_answers_is_late(
    api: Api, systems: RunningSandbox, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    monkeypatch.setattr(service, "TIMEOUT_S", 0.2)
    await systems.hold(system, READS[system])
    assert await find_code(api, system) == "late"
    await systems.release(system)


async def test_a_desk_without_the_mailbox_is_named(api: Api, systems: RunningSandbox) -> None:
    assert systems.options.desk_mailbox_id == 1
    assert (await put_setting(api, "support_desk_mailbox_id", 2)).status == 200
    assert await find_code(api, "desk") == "mailbox_unknown"


async def test_a_key_that_no_header_can_hold_is_named(api: Api, systems: RunningSandbox) -> None:
    for system, name in BY_SYSTEM.items():
        assert (await put_setting(api, name, "clé-à-molette")).status == 200
        assert await find_code(api, system) == "credential_unusable", system
    assert await list_operations(systems) == []


async def test_a_credential_under_another_master_key_is_named(api: Api, systems: RunningSandbox, rival: Rival) -> None:
    await rival.run("UPDATE platform_secrets SET sealed = sealed || 'x'::bytea WHERE name = 'card_secret_key'")
    assert await find_code(api, "card") == "credential_unreadable"
    assert await systems.calls("card") == []


async def test_a_test_mail_goes_to_the_address_of_the_caller(api: Api, people: People, mail_server: MailServer) -> None:
    await configure_mail(api, mail_server)
    root = people.person("root", email="root@example.org", **ADMINISTRATOR)
    assert await find_code(root, "mail") == "mail_accepted"
    (mail,) = mail_server.received
    assert (mail.sender, mail.recipient) == ("codes@example.org", "root@example.org")
    assert mail.message["subject"] == "Test mail from Soundmark"
    assert mail.message["auto-submitted"] == "auto-generated"
    assert "can send mail through your mail server" in mail.part("plain")


async def test_the_operator_of_this_machine_has_no_address_so_the_sender_gets_the_mail(
    api: Api, mail_server: MailServer
) -> None:
    await configure_mail(api, mail_server)
    assert await find_code(api, "mail") == "sender_mail_accepted"
    assert [mail.recipient for mail in mail_server.received] == ["codes@example.org"]


@pytest.mark.parametrize(
    ("command", "reply", "code"),
    [
        ("MAIL", f"451 4.3.2 {PLANTED}", "failing"),
        ("MAIL", f"530 5.7.0 {PLANTED}", "login_refused"),
        ("MAIL", f"550 5.1.8 {PLANTED}", "sender_refused"),
        ("RCPT", f"550 5.1.1 {PLANTED}", "recipient_refused"),
        ("RCPT", f"450 4.2.0 {PLANTED}", "failing"),
        ("DATA", f"554 5.6.0 {PLANTED}", "recipient_refused"),
    ],
)
async def test_what_a_mail_server_replies_is_named_and_not_repeated(
    api: Api, mail_server: MailServer, command: str, reply: str, code: str
) -> None:
    await configure_mail(api, mail_server)
    mail_server.replies[command] = reply
    with capture_logs() as logs:
        assert await find_code(api, "mail") == code
    assert PLANTED not in repr(logs)
    assert mail_server.connections_count == 1


@pytest.mark.parametrize(("offers_tls", "code"), [(True, "login_refused"), (False, "unexpected")])
async def test_a_wrong_password_is_named_and_so_is_a_server_that_takes_no_login(
    api: Api, tmp_path: Path, *, offers_tls: bool, code: str
) -> None:
    """The server takes a login over TLS alone."""
    certificate = make_certificate(tmp_path, "127.0.0.1") if offers_tls else None
    async with running_mail_server(certificate=certificate, needs_login=True) as server:
        await configure_mail(api, server)
        assert (await put_setting(api, "smtp_username", USERNAME)).status == 200
        assert (await put_setting(api, "smtp_password", f"{PASSWORD}-of-somebody-else")).status == 200
        assert await find_code(api, "mail") == code
        assert server.received == []


async def test_a_mail_server_that_nobody_reaches_or_that_hangs_is_named(
    api: Api, mail_server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "TIMEOUT_S", 0.3)
    await configure_mail(api, mail_server)
    mail_server.is_hanging = True
    assert await find_code(api, "mail") == "late"
    assert (await put_setting(api, "smtp_port", 9)).status == 200
    assert await find_code(api, "mail") == "unreachable"
    async with misbehaving_server(silent) as server:
        assert (await put_setting(api, "smtp_port", int(server.url.rpartition(":")[2]))).status == 200
        assert await find_code(api, "mail") == "late"


async def test_a_system_has_one_test_at_a_time_and_others_do_not_wait(api: Api, systems: RunningSandbox) -> None:
    await systems.hold("desk", READS["desk"])
    first = asyncio.create_task(run_test(api, "desk"))
    await systems.until_held("desk")
    refused = await run_test(api, "desk")
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "rate_limited", "1")
    assert await find_code(api, "accounting") == "answered"
    await systems.release("desk")
    assert (await first).json["code"] == "answered"
    assert await find_code(api, "desk") == "answered"


async def test_a_caller_who_leaves_does_not_keep_the_system_busy(api: Api, systems: RunningSandbox) -> None:
    await systems.hold("desk", READS["desk"])
    first = asyncio.create_task(run_test(api, "desk"))
    await systems.until_held("desk")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await systems.release("desk")
    assert await find_code(api, "desk") == "answered"


async def test_a_system_is_tested_ten_times_in_a_minute(api: Api) -> None:
    statuses = [(await run_test(api, "card")).status for _ in range(11)]
    assert statuses == [200] * 10 + [429]
    assert await find_code(api, "desk") == "not_configured"
    api.clock.advance(seconds=61)
    assert await find_code(api, "card") == "not_configured"


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({}, "platform_admin_required"),
        ({**ADMINISTRATOR, "acr": "1"}, "mfa_required"),
        ({**ADMINISTRATOR, "email_verified": False}, "email_not_verified"),
    ],
)
async def test_others_test_nothing(
    api: Api, people: People, mail_server: MailServer, claims: dict[str, Any], code: str
) -> None:
    await configure_mail(api, mail_server)
    answered = await run_test(people.person("ada", **claims), "mail")
    assert (answered.status, answered.code) == (403, code)
    assert mail_server.connections_count == 0


@pytest.mark.parametrize("system", ["local", "smtp", "Mail", "x"])
async def test_another_system_is_not_found(api: Api, system: str) -> None:
    answered = await run_test(api, system)
    assert (answered.status, answered.code) == (404, "not_found")
