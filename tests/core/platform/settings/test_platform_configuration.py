"""The platform's configuration: which values are accepted, and when they apply."""

from typing import Any

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.platform_settings import (
    FROM_DEFAULT,
    NAMED_CONFIGURATION,
    NAMED_SECRETS,
    PASSWORD,
    SETTINGS,
    put_setting,
    read_settings,
)

from soundmark.kit.text.timestamps import format_timestamp

# One value of each stored setting, with its stored form; tests/settings/test_registry.py tests the rule of each.
TAKEN: list[tuple[str, Any, Any]] = [
    ("accounting_base_url", "https://books.example.org/dolibarr/", "https://books.example.org/dolibarr"),
    ("accounting_enable_invoice_sync", True, True),
    ("accounting_entity_id", 2**31 - 1, 2**31 - 1),
    ("accounting_tva_rate", 19.0, 19),
    ("accounting_tva_rate", 5.5, 5.5),
    ("smtp_from_email", "codes+radio@example.org", "codes+radio@example.org"),
    ("smtp_from_name", " Radio Nordlicht ☃ ", "Radio Nordlicht ☃"),
    ("smtp_host", "mail.example.org", "mail.example.org"),
    ("smtp_port", 2525, 2525),
    ("smtp_secure", False, False),
    ("support_desk_base_url", "https://desk.example.org", "https://desk.example.org"),
    ("support_desk_mailbox_id", 1, 1),
]
REFUSED: list[tuple[str, Any]] = [
    *(("accounting_base_url", value) for value in ("http://127.0.0.1", "https://" + "a" * 2050, [], {})),
    ("accounting_enable_invoice_sync", 1),
    ("accounting_entity_id", 1.5),
    *(("accounting_tva_rate", value) for value in (19.001, 10**400)),
    ("smtp_from_email", "a@b\nBcc: c@d"),
    ("smtp_from_name", "a\0"),
    *(("smtp_host", value) for value in (True, "169.254.169.254")),
    ("smtp_port", "25"),
    ("smtp_secure", "true"),
    ("support_desk_base_url", "https://user:password@desk.example.org"),
    *((name, "https://169.254.169.254") for name in ("accounting_base_url", "support_desk_base_url")),
    ("support_desk_mailbox_id", 0),
]


def test_every_setting_is_tried() -> None:
    assert {name for name, *_ in TAKEN} == {name for name, _ in REFUSED} == NAMED_CONFIGURATION


async def test_a_setting_applies_from_its_commit_on(api: Api) -> None:
    now = api.clock.freeze()
    for name, value, kept in TAKEN:
        answer = await put_setting(api, name, value)
        expected = {"value": kept, "source": "database", "updated_at": format_timestamp(now)}
        assert (answer.status, answer.json) == (200, expected)
        assert (await read_settings(api))["configuration"][name] == expected
        assert type(answer.json["value"]) is type(kept), "a boolean is no number"


async def test_another_value_is_refused(api: Api, rival: Rival) -> None:
    for name, value in REFUSED:
        answer = await put_setting(api, name, value)
        assert (answer.status, answer.code) == (422, "validation_failed"), name
        assert {error["pointer"].split("/")[1] for error in answer.json["errors"]} == {"value"}, name
        assert "user:password" not in answer.body.decode()
    assert await rival.rows("SELECT count(*) FROM platform_configuration") == [(0,)]


@pytest.mark.parametrize("name", ["smtp_password", "x"])
async def test_an_unknown_setting_is_not_found(api: Api, name: str) -> None:
    """A credential is not found either: it is not configuration, and its value is never shown."""
    for body in ({"value": "mail.example.org"}, {"value": None}, {}):
        answer = await api.call("PUT", f"{SETTINGS}/configuration/{name}", json=body)
        assert (answer.status, answer.code) == (404, "not_found")
        assert answer.json["detail"] == "No setting has this name."


async def test_null_removes_the_override(api: Api) -> None:
    await put_setting(api, "smtp_from_name", "Radio Nordlicht")
    answer = await put_setting(api, "smtp_from_name", None)
    assert (answer.status, answer.json) == (200, {"value": "Soundmark", **FROM_DEFAULT})
    assert (await put_setting(api, "smtp_from_name", None)).json == answer.json, "repeated, it changes nothing"


async def test_the_port_follows_the_use_of_tls(api: Api) -> None:
    """Unless the port itself is set."""
    await put_setting(api, "smtp_secure", value=False)
    assert (await read_settings(api))["configuration"]["smtp_port"] == {"value": 587, **FROM_DEFAULT}
    await put_setting(api, "smtp_port", 2525)
    assert (await read_settings(api))["configuration"]["smtp_port"]["value"] == 2525


async def test_of_two_concurrent_changes_the_last_one_holds(api: Api, rival: Rival) -> None:
    """The second waits for the first to commit; neither is an error."""
    insert = "INSERT INTO platform_configuration VALUES ('smtp_host', '\"first.example.org\"', now())"
    async with rival.committing(insert):
        changing = await rival.while_waiting(put_setting(api, "smtp_host", "second.example.org"))
    assert (await changing).json["value"] == "second.example.org"
    insert = "INSERT INTO platform_secrets VALUES ('smtp_password', 'x', now())"
    async with rival.committing(insert):
        changing = await rival.while_waiting(put_setting(api, "smtp_password", PASSWORD))
    assert (await changing).json["configured"] is True


@pytest.mark.parametrize("name", ["smtp_host", "smtp_password"])
async def test_a_change_whose_connection_dies_is_not_made(api: Api, rival: Rival, name: str) -> None:
    before = await read_settings(api)
    table = "platform_secrets" if name in NAMED_SECRETS else "platform_configuration"
    async with rival.holding(f"LOCK TABLE {table} IN EXCLUSIVE MODE"):
        changing = await rival.while_waiting(put_setting(api, name, "value-of-a-dead-connection"))
        assert await rival.kill_waiting_sessions() == 1
        answer = await changing
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert await read_settings(api) == before
