"""The source that a running process takes a setting from: the database, the environment or the default."""

from dataclasses import replace
from typing import Any

import pytest
from support.api.core_client import Api
from support.api.core_settings import MASTER_KEY, core_settings
from support.processes.running_apps import running_core
from support.tenancy.platform_settings import FROM_DEFAULT, PASSWORD, SETTINGS, put_setting, read_settings

from soundmark.core.live.platform_settings import PlatformSettings
from soundmark.core.providers.smtp_settings import SmtpServer, find_smtp_server, has_smtp_server
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import SealBroken, Sealer, parse_master_key
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import Database


async def test_every_process_applies_a_change_at_once(api: Api, database_url: Secret) -> None:
    """Two Cores on one database, without a restart and without waiting."""
    async with running_core(core_settings(database_url)) as other:
        for value in ("one.example.org", "two.example.org", None):
            changed = await put_setting(api, "smtp_host", value)
            assert (await read_settings(other))["configuration"]["smtp_host"] == changed.json


@pytest.fixture
async def db(database_url: Secret) -> Any:
    """An open database with a pool of its own."""
    database = Database(database_url, pool_size=2, application_name="test")
    await database.open()
    yield database
    await database.close()


def make_platform_settings(
    db: Database, url: Secret, *, master_key: str = MASTER_KEY, **given: Any
) -> PlatformSettings:
    """Make the platform settings of another process with its own environment."""
    sealer = Sealer(parse_master_key(master_key), SystemEntropy())
    return PlatformSettings(db, sealer, core_settings(url, **given))


async def test_the_database_wins_over_the_environment(api: Api, db: Database, database_url: Secret) -> None:
    given = {
        "smtp_host": "env.example.org",
        "smtp_port": 2525,
        "smtp_secure": "false",
        "smtp_from_email": "env@example.org",
        "smtp_username": "env user",
    }
    process = make_platform_settings(db, database_url, **given)
    before = await find_smtp_server(process)
    assert before == replace(before, host="env.example.org", port=2525, is_implicit_tls=False)
    assert (before.from_email, before.from_name, before.password) == ("env@example.org", "Soundmark", None)
    assert before.username.reveal() == "env user"

    await put_setting(api, "smtp_host", "db.example.org")
    await put_setting(api, "smtp_secure", value=True)
    await put_setting(api, "smtp_username", "db user")
    await put_setting(api, "smtp_password", PASSWORD)
    after = await find_smtp_server(process)
    assert (after.host, after.port, after.is_implicit_tls) == ("db.example.org", 2525, True)
    assert (after.username.reveal(), after.password.reveal()) == ("db user", PASSWORD)
    assert PASSWORD not in repr(after)

    await put_setting(api, "smtp_host", None)
    assert (await find_smtp_server(process)).host == "env.example.org"


async def test_a_value_of_the_environment_is_shown_with_its_source(database_url: Secret) -> None:
    """`configured` includes a credential from the environment, whose value is as secret as any other."""
    given = {"smtp_host": "env.example.org", "smtp_password": PASSWORD, "smtp_secure": "false"}
    async with running_core(core_settings(database_url, **given)) as api:
        shown = await api.get(SETTINGS)
        assert shown.json["configuration"]["smtp_host"] == {
            "value": "env.example.org",
            "source": "environment",
            "updated_at": None,
        }
        assert shown.json["configuration"]["smtp_port"] == {"value": 587, **FROM_DEFAULT}
        assert shown.json["secrets"]["smtp_password"] == {"configured": True, "updated_at": None}
        assert PASSWORD not in shown.body.decode()
        assert (await put_setting(api, "smtp_secure", value=True)).json["source"] == "database"
        assert (await put_setting(api, "smtp_secure", None)).json == {
            "value": False,
            "source": "environment",
            "updated_at": None,
        }


@pytest.mark.parametrize("given", [{}, {"smtp_host": "mail.example.org"}, {"smtp_from_email": "a@example.org"}])
async def test_without_a_host_and_a_sender_there_is_no_mail(
    db: Database, database_url: Secret, given: dict[str, str]
) -> None:
    assert await find_smtp_server(make_platform_settings(db, database_url, **given)) is None


async def test_an_open_relay_needs_no_login(db: Database, database_url: Secret) -> None:
    given = {"smtp_host": "mail.example.org", "smtp_from_email": "a@example.org", "smtp_from_name": "Radio"}
    expected = SmtpServer("mail.example.org", 465, True, "a@example.org", "Radio", None, None)
    assert await find_smtp_server(make_platform_settings(db, database_url, **given)) == expected


async def test_another_master_key_opens_no_credential(api: Api, db: Database, database_url: Secret) -> None:
    """It raises an error instead of sending mail without the login."""
    await put_setting(api, "smtp_password", PASSWORD)
    given = {"smtp_host": "mail.example.org", "smtp_from_email": "a@example.org"}
    process = make_platform_settings(db, database_url, master_key="A" * 43, **given)
    with pytest.raises(SealBroken):
        await find_smtp_server(process)
    assert await has_smtp_server(process)
    assert (await process.list_all()).secrets["smtp_password"].is_configured
