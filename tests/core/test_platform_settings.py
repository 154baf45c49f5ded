"""What the administrators of the platform set while everything runs."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from core_app import MASTER_KEY, Answer, Api, Rival, Tenant, core_settings, running_core
from declared import declared_routes

from soundmark.core.access import operator
from soundmark.core.access.authorise import authorise_user
from soundmark.core.access.policy import Action
from soundmark.core.configuration import Configuration, Smtp, from_environment
from soundmark.core.domain.platform import CONFIGURATION_NAMES, SECRET_NAMES
from soundmark.core.domain.scope import ServerKey, User
from soundmark.core.problems import MfaRequired, PlatformAdminRequired, UserTokenRequired
from soundmark.kit.entropy import SystemEntropy
from soundmark.kit.http import ACCESS
from soundmark.kit.postgres import Database
from soundmark.kit.problems import Problem
from soundmark.kit.sealing import SealBroken, Sealer, parse_master_key
from soundmark.kit.secret import Secret
from soundmark.kit.timestamps import format_timestamp

SETTINGS = "/v1/platform/settings"
PASSWORD = "correct horse battery staple, 42 ü"

# API v1, "Platform settings", and contract, section 7, written down a second time on purpose.
NAMED_SECRETS = {
    *("card_secret_key", "card_webhook_secret", "local_public_key", "local_secret_key", "support_api_key"),
    *("support_webhook_secret", "accounting_api_key", "smtp_username", "smtp_password"),
}
NAMED_CONFIGURATION = {
    *("support_desk_base_url", "support_desk_mailbox_id", "accounting_base_url", "accounting_entity_id"),
    *("accounting_tva_rate", "accounting_enable_invoice_sync", "smtp_host", "smtp_port", "smtp_secure"),
    *("smtp_from_email", "smtp_from_name"),
}
FROM_NOBODY = {"source": "default", "updated_at": None}
DEFAULTS = {
    **dict.fromkeys(NAMED_CONFIGURATION),
    "accounting_enable_invoice_sync": False,
    "smtp_from_name": "Soundmark",
    "smtp_port": 465,
    "smtp_secure": True,
}


async def put(api: Api, name: str, value: Any) -> Answer:
    kind = "secrets" if name in NAMED_SECRETS else "configuration"
    return await api.call("PUT", f"{SETTINGS}/{kind}/{name}", json={"value": value})


async def settings_of(api: Api) -> dict[str, Any]:
    answer = await api.get(SETTINGS)
    assert answer.status == 200, answer.body
    return dict(answer.json)


async def test_nothing_is_set_at_first(api: Api) -> None:
    assert await settings_of(api) == {
        "secrets": {name: {"configured": False, "updated_at": None} for name in NAMED_SECRETS},
        "configuration": {name: {"value": value, **FROM_NOBODY} for name, value in DEFAULTS.items()},
    }


def test_the_names_are_the_specified_ones() -> None:
    assert set(SECRET_NAMES) == NAMED_SECRETS
    assert set(CONFIGURATION_NAMES) == NAMED_CONFIGURATION


# Credentials.


@pytest.mark.parametrize("name", sorted(NAMED_SECRETS))
async def test_a_credential_is_told_of_and_never_told(api: Api, rival: Rival, name: str) -> None:
    now = api.clock.freeze()
    answer = await put(api, name, PASSWORD)
    assert (answer.status, answer.json) == (200, {"configured": True, "updated_at": format_timestamp(now)})
    shown = await api.get(SETTINGS)
    assert shown.json["secrets"][name] == answer.json
    assert PASSWORD not in answer.body.decode() + shown.body.decode()
    ((sealed,),) = await rival.rows("SELECT sealed FROM platform_secrets WHERE name = %s", name)
    assert PASSWORD.encode() not in sealed


async def test_a_credential_is_sealed_to_its_name(api: Api, rival: Rival) -> None:
    """Moved to another name, where something else would send it elsewhere, it does not open."""
    await put(api, "card_secret_key", PASSWORD)
    ((sealed,),) = await rival.rows("SELECT sealed FROM platform_secrets")
    sealer = Sealer(parse_master_key(MASTER_KEY), SystemEntropy())
    place = {"table": "platform_secrets", "column": "sealed"}
    assert sealer.unseal(sealed, **place, row="card_secret_key").decode() == PASSWORD
    with pytest.raises(SealBroken):
        sealer.unseal(sealed, **place, row="smtp_password")


async def test_a_credential_is_replaced(api: Api, rival: Rival) -> None:
    await put(api, "support_api_key", "the first")
    api.clock.advance(seconds=5)
    later = await put(api, "support_api_key", "the second")
    assert (await settings_of(api))["secrets"]["support_api_key"] == later.json
    assert await rival.rows("SELECT count(*) FROM platform_secrets") == [(1,)]


@pytest.mark.parametrize(
    "value", ["a", "x" * 4096, " spaces stay ", "ü☃😀", "-----BEGIN\nEND-----\n"], ids=lambda v: v[:9]
)
async def test_a_credential_has_1_to_4096_characters(api: Api, value: str) -> None:
    assert (await put(api, "card_secret_key", value)).status == 200


@pytest.mark.parametrize("value", ["", "x" * 4097, None, 1, True, [], {}], ids=lambda v: repr(v)[:9])
async def test_another_credential_is_refused(api: Api, rival: Rival, value: Any) -> None:
    answer = await put(api, "card_secret_key", value)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/value"]
    assert await rival.rows("SELECT count(*) FROM platform_secrets") == [(0,)]


async def test_a_refused_credential_is_not_repeated(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        refused = await put(api, "smtp_password", PASSWORD * 200)
        taken = await put(api, "smtp_password", PASSWORD)
    assert refused.status == 422
    assert taken.status == 200
    assert PASSWORD not in refused.body.decode() + caplog.text


@pytest.mark.parametrize("name", ["smtp_host", "SMTP_PASSWORD", "smtp_password ", "x", "master_key", "a" * 160])
async def test_an_unknown_credential_is_not_found(api: Api, name: str) -> None:
    """Whatever the body says."""
    for body in ({"value": PASSWORD}, {"value": 7}, {}):
        answer = await api.call("PUT", f"{SETTINGS}/secrets/{name}", json=body)
        assert (answer.status, answer.code) == (404, "not_found")


# Configuration.

TAKEN: list[tuple[str, Any, Any]] = [
    *((name, "https://desk.example.org", "https://desk.example.org") for name in ("support_desk_base_url",)),
    ("support_desk_base_url", "https://desk.example.org:8443/support/", "https://desk.example.org:8443/support"),
    ("accounting_base_url", "https://[2001:db8::1]/books", "https://[2001:db8::1]/books"),
    ("accounting_base_url", "https://192.0.2.7", "https://192.0.2.7"),
    ("support_desk_mailbox_id", 1, 1),
    ("accounting_entity_id", 2**31 - 1, 2**31 - 1),
    ("accounting_tva_rate", 0, 0),
    ("accounting_tva_rate", 19, 19),
    ("accounting_tva_rate", 19.0, 19),
    ("accounting_tva_rate", 5.5, 5.5),
    ("accounting_tva_rate", 100, 100),
    ("accounting_tva_rate", 8.33, 8.33),
    ("accounting_enable_invoice_sync", True, True),
    ("accounting_enable_invoice_sync", False, False),
    ("smtp_host", "mail.example.org", "mail.example.org"),
    ("smtp_host", "mail_server", "mail_server"),
    ("smtp_host", "127.0.0.1", "127.0.0.1"),
    ("smtp_host", "::1", "::1"),
    ("smtp_port", 1, 1),
    ("smtp_port", 65535, 65535),
    ("smtp_secure", False, False),
    ("smtp_from_email", "codes+radio@example.org", "codes+radio@example.org"),
    ("smtp_from_name", " Radio Nordlicht ☃ ", "Radio Nordlicht ☃"),
    ("smtp_from_name", "x" * 120, "x" * 120),
]
_NO_URL = [
    *("http://desk.example.org", "ftp://desk.example.org", "desk.example.org", "", "https://", "https:///x", "//x.org"),
    *("https://user@desk.example.org", "https://user:password@desk.example.org", "https://@desk.example.org"),
    *("https://desk.example.org?x=1", "https://desk.example.org/?", "https://desk.example.org/#top"),
    *("https://desk.example.org#", "https://desk.example.org:0", "https://desk.example.org:99999"),
    *(
        "https://desk example.org",
        "https://desk.example.org/\n",
        "https://dësk.example.org",
        "https://a..b",
        " https://a",
    ),
    *("https://" + "a" * 2050, 7, True, 1.5, [], {}),
]
REFUSED: list[tuple[str, Any]] = [
    *(("support_desk_base_url", value) for value in _NO_URL),
    *(("accounting_base_url", value) for value in _NO_URL),
    *(("support_desk_mailbox_id", value) for value in (0, -1, 2**31, 1.5, "7", True, "", [])),
    *(("accounting_entity_id", value) for value in (0, -1, 2**31, 1.5, "7", True, "", {})),
    *(("accounting_tva_rate", value) for value in (-0.01, 100.01, 19.001, "19", True, "", [19])),
    *(("accounting_enable_invoice_sync", value) for value in (0, 1, "true", "", [], 1.0)),
    *(("smtp_secure", value) for value in (0, 1, "true", "", {}, 0.0)),
    *(
        ("smtp_host", value)
        for value in ("", " ", "mail.", ".mail", "-mail", "a b", "mail:25", "[::1]", "x" * 254, 7, True)
    ),
    *(("smtp_host", value) for value in ("mäil", "mail\0", "mail\n", "https://mail", "fe80::1%eth0", "a@b")),
    *(("smtp_port", value) for value in (0, 65536, -1, 25.5, "25", True, "", [])),
    *(
        ("smtp_from_email", value)
        for value in ("", "a", "@b", "a@", "a@b@c", "a b@c", "<a@b>", "a@b\nBcc: c@d", ".a@b", 7)
    ),
    *(
        ("smtp_from_email", value)
        for value in ("ä@b", "a" * 65 + "@b", "a@" + "b." * 127 + "c", "a..b@c", '"a"@b', "a@-b")
    ),
    *(("smtp_from_name", value) for value in ("", " ", "x" * 121, "a\nb", "a\0", "a\r\nBcc: x", 7, True, [])),
]


@pytest.mark.parametrize(("name", "value", "kept"), TAKEN, ids=repr)
async def test_a_setting_holds_from_its_commit_on(api: Api, name: str, value: Any, kept: Any) -> None:
    now = api.clock.freeze()
    answer = await put(api, name, value)
    expected = {"value": kept, "source": "database", "updated_at": format_timestamp(now)}
    assert (answer.status, answer.json) == (200, expected)
    assert (await settings_of(api))["configuration"][name] == expected
    assert type(answer.json["value"]) is type(kept), "a boolean is no number"


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=lambda v: repr(v)[:40])
async def test_another_value_is_refused(api: Api, rival: Rival, name: str, value: Any) -> None:
    answer = await put(api, name, value)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert {error["pointer"].split("/")[1] for error in answer.json["errors"]} == {"value"}
    if isinstance(value, str) and "password" in value:
        assert value not in answer.body.decode()
    assert await rival.rows("SELECT count(*) FROM platform_configuration") == [(0,)]


@pytest.mark.parametrize("body", [{}, {"value": "a", "more": 1}, [], "a", {"Value": "a"}], ids=repr)
async def test_the_body_is_one_value(api: Api, body: Any) -> None:
    for path in ("configuration/smtp_host", "secrets/smtp_password"):
        answer = await api.call("PUT", f"{SETTINGS}/{path}", json=body)
        assert (answer.status, answer.code) == (422, "validation_failed")


@pytest.mark.parametrize("name", ["smtp_password", "smtp_username", "SMTP_HOST", "x", "a" * 160, "smtp_host%20"])
async def test_an_unknown_setting_is_not_found(api: Api, name: str) -> None:
    """A credential is none: it is not configuration, and its value is never shown."""
    for body in ({"value": "mail.example.org"}, {"value": None}, {}):
        answer = await api.call("PUT", f"{SETTINGS}/configuration/{name}", json=body)
        assert (answer.status, answer.code) == (404, "not_found")


async def test_null_removes_the_override(api: Api) -> None:
    await put(api, "smtp_from_name", "Radio Nordlicht")
    answer = await put(api, "smtp_from_name", None)
    assert (answer.status, answer.json) == (200, {"value": "Soundmark", **FROM_NOBODY})
    assert (await put(api, "smtp_from_name", None)).json == answer.json, "repeated, it changes nothing"


async def test_the_port_follows_the_way_of_speaking_tls(api: Api) -> None:
    """Unless it is set itself."""
    await put(api, "smtp_secure", value=False)
    assert (await settings_of(api))["configuration"]["smtp_port"] == {"value": 587, **FROM_NOBODY}
    await put(api, "smtp_port", 2525)
    assert (await settings_of(api))["configuration"]["smtp_port"]["value"] == 2525


async def test_the_last_of_two_changes_at_once_holds(api: Api, rival: Rival) -> None:
    """The second waits for the first to commit; neither is an error."""
    insert = "INSERT INTO platform_configuration VALUES ('smtp_host', '\"first.example.org\"', now())"
    async with rival.committing(insert):
        changing = await rival.while_waiting(put(api, "smtp_host", "second.example.org"))
    assert (await changing).json["value"] == "second.example.org"
    insert = "INSERT INTO platform_secrets VALUES ('smtp_password', 'x', now())"
    async with rival.committing(insert):
        changing = await rival.while_waiting(put(api, "smtp_password", PASSWORD))
    assert (await changing).json["configured"] is True


@pytest.mark.parametrize("name", ["smtp_host", "smtp_password"])
async def test_a_change_whose_connection_dies_did_not_happen(api: Api, rival: Rival, name: str) -> None:
    before = await settings_of(api)
    table = "platform_secrets" if name in NAMED_SECRETS else "platform_configuration"
    async with rival.holding(f"LOCK TABLE {table} IN EXCLUSIVE MODE"):
        changing = await rival.while_waiting(put(api, name, "mail.example.org"))
        await rival.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        answer = await changing
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert await settings_of(api) == before


# Who may.


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes the operator somebody else."""

    def become(**changes: Any) -> None:
        monkeypatch.setattr(operator, "OPERATOR", replace(operator.OPERATOR, **changes))

    return become


REQUESTS = [
    ("GET", SETTINGS, None),
    ("PUT", f"{SETTINGS}/configuration/smtp_host", {"value": "mail.example.org"}),
    ("PUT", f"{SETTINGS}/secrets/smtp_password", {"value": PASSWORD}),
    ("PUT", f"{SETTINGS}/secrets/no_such_name", {"value": PASSWORD}),
    ("PUT", f"{SETTINGS}/configuration/no_such_name", {"value": 1, "unknown": 2}),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request_: " ".join(request_[:2]))
async def test_others_learn_nothing(api: Api, rival: Rival, another: Any, request_: tuple[str, str, Any]) -> None:
    """Not even which names there are."""
    method, path, body = request_
    tenant: Tenant = await api.given_tenant()
    stranger = await api.other(token=None).call(method, path, json=body)
    assert (stranger.status, stranger.code) == (401, "unauthenticated")
    another(is_platform_admin=False)
    owner = await tenant.api.call(method, path, json=body)
    assert (owner.status, owner.code) == (403, "platform_admin_required")
    another(is_platform_admin=True, has_mfa=False)
    weak = await api.call(method, path, json=body)
    assert (weak.status, weak.code) == (403, "mfa_required")
    assert await rival.rows("SELECT name FROM platform_secrets UNION SELECT name FROM platform_configuration") == []


KEY = ServerKey("key_1", "org_1", "prj_1", frozenset({"codes:read", "codes:write"}), b"digest")
ADMINISTRATOR = User("u", "u@example.org", has_mfa=True, is_platform_admin=True)


@pytest.mark.parametrize("action", ["platform.read", "platform.change"])
@pytest.mark.parametrize(
    ("caller", "problem"),
    [
        (KEY, UserTokenRequired),
        (replace(ADMINISTRATOR, is_platform_admin=False), PlatformAdminRequired),
        (replace(ADMINISTRATOR, is_platform_admin=False, has_mfa=False), PlatformAdminRequired),
        (replace(ADMINISTRATOR, has_mfa=False), MfaRequired),
    ],
)
def test_only_an_administrator_with_a_second_factor_may(action: Action, caller: Any, problem: type[Problem]) -> None:
    with pytest.raises(problem):
        authorise_user(caller, action)
    assert authorise_user(ADMINISTRATOR, action) is ADMINISTRATOR


async def test_the_credential_route_alone_is_left_out_of_the_document(api: Api) -> None:
    """API v1, "Versioning" 1. Left out of the document is not left out of the policy."""
    hidden = {
        (*sorted(route.methods), route.path): (route.openapi_extra or {})[ACCESS]["action"]
        for route in declared_routes()
        if not route.include_in_schema
    }
    assert hidden == {("PUT", "/v1/platform/settings/secrets/{name}"): "platform.change"}
    document = dict((await api.published()).document)
    assert not [path for path in document["paths"] if "secrets" in path]
    assert "PutSecret" not in document["components"]["schemas"]
    shown = {path for path in document["paths"] if path.startswith("/v1/platform/")}
    assert shown == {SETTINGS, f"{SETTINGS}/configuration/{{name}}"}


# What a running process goes by.


async def test_every_process_goes_by_a_change_at_once(api: Api, database_url: Secret) -> None:
    """Two Cores on one database; nothing is restarted and nothing waited for."""
    async with running_core(core_settings(database_url)) as other:
        for value in ("one.example.org", "two.example.org", None):
            changed = await put(api, "smtp_host", value)
            assert (await settings_of(other))["configuration"]["smtp_host"] == changed.json


@pytest.fixture
async def db(database_url: Secret) -> Any:
    database = Database(database_url, pool_size=2, application_name="test")
    await database.open()
    yield database
    await database.close()


def configuration(db: Database, url: Secret, *, master_key: str = MASTER_KEY, **given: Any) -> Configuration:
    """As another process with its own environment has it."""
    settings = core_settings(url, **given)
    sealer = Sealer(parse_master_key(master_key), SystemEntropy())
    return Configuration(db, sealer, from_environment(dict(settings)))


async def test_the_database_wins_over_the_environment(api: Api, db: Database, database_url: Secret) -> None:
    given = {
        "smtp_host": "env.example.org",
        "smtp_port": 2525,
        "smtp_secure": "false",
        "smtp_from_email": "env@example.org",
        "smtp_username": "env user",
    }
    process = configuration(db, database_url, **given)
    before = await process.smtp()
    assert before == replace(before, host="env.example.org", port=2525, is_implicit_tls=False)
    assert (before.from_email, before.from_name, before.password) == ("env@example.org", "Soundmark", None)
    assert before.username.reveal() == "env user"

    await put(api, "smtp_host", "db.example.org")
    await put(api, "smtp_secure", value=True)
    await put(api, "smtp_username", "db user")
    await put(api, "smtp_password", PASSWORD)
    after = await process.smtp()
    assert (after.host, after.port, after.is_implicit_tls) == ("db.example.org", 2525, True)
    assert (after.username.reveal(), after.password.reveal()) == ("db user", PASSWORD)
    assert PASSWORD not in repr(after)

    await put(api, "smtp_host", None)
    assert (await process.smtp()).host == "env.example.org"


async def test_a_value_of_the_environment_is_told_with_its_source(database_url: Secret) -> None:
    """`configured` counts a credential of the environment, whose value is as secret as any other."""
    given = {"smtp_host": "env.example.org", "smtp_password": PASSWORD, "smtp_secure": "false"}
    async with running_core(core_settings(database_url, **given)) as api:
        shown = await api.get(SETTINGS)
        assert shown.json["configuration"]["smtp_host"] == {
            "value": "env.example.org",
            "source": "environment",
            "updated_at": None,
        }
        assert shown.json["configuration"]["smtp_port"] == {"value": 587, **FROM_NOBODY}
        assert shown.json["secrets"]["smtp_password"] == {"configured": True, "updated_at": None}
        assert PASSWORD not in shown.body.decode()
        assert (await put(api, "smtp_secure", value=True)).json["source"] == "database"
        assert (await put(api, "smtp_secure", None)).json == {
            "value": False,
            "source": "environment",
            "updated_at": None,
        }


@pytest.mark.parametrize("given", [{}, {"smtp_host": "mail.example.org"}, {"smtp_from_email": "a@example.org"}])
async def test_without_a_host_and_a_sender_there_is_no_mail(
    db: Database, database_url: Secret, given: dict[str, str]
) -> None:
    assert await configuration(db, database_url, **given).smtp() is None


async def test_an_open_relay_needs_no_login(db: Database, database_url: Secret) -> None:
    given = {"smtp_host": "mail.example.org", "smtp_from_email": "a@example.org", "smtp_from_name": "Radio"}
    expected = Smtp("mail.example.org", 465, True, "a@example.org", "Radio", None, None)
    assert await configuration(db, database_url, **given).smtp() == expected


async def test_another_master_key_opens_no_credential(api: Api, db: Database, database_url: Secret) -> None:
    """And says so, instead of sending mail without the login."""
    await put(api, "smtp_password", PASSWORD)
    given = {"smtp_host": "mail.example.org", "smtp_from_email": "a@example.org"}
    process = configuration(db, database_url, master_key="A" * 43, **given)
    with pytest.raises(SealBroken):
        await process.smtp()
    everything = await process.everything()
    assert everything.secrets["smtp_password"].is_configured
