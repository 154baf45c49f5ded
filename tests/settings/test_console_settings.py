"""Settings of the console: the key that seals its cookies, its addresses, and the ways to sign in."""

from pathlib import Path

import pytest

from soundmark import settings
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.settings import SettingsInvalid

KEY = "A" * 43
OIDC = {"OIDC_ISSUER": "https://id.example/realms/soundmark", "OIDC_CLIENT_ID": "console"}
TOKEN = {"OPERATOR_TOKEN": "xop_" + "o" * 43}
TICKETS = {"CONSOLE_TICKETS_PATH": "/srv/tickets"}
PUBLISHER = {
    "PUBLISHER_URL": "https://publisher.example",
    "PUBLISHER_INTEGRATION_ID": "int_aW50ZWdyYXRpb24tZXhhbX",
}


def read(**given: str) -> settings.ConsoleSettings:
    environ = {f"SOUNDMARK_{name}": value for name, value in given.items()}
    return settings.read(settings.ConsoleSettings, environ)


def faults(**given: str) -> list[str]:
    with pytest.raises(SettingsInvalid) as refusal:
        read(**given)
    return refusal.value.faults


def test_the_addresses_are_those_of_a_local_service_by_default() -> None:
    made = read(CONSOLE_KEY=KEY)
    assert (made.base_url, made.core_url, made.console_url) == (
        "http://127.0.0.1:8080",
        "http://127.0.0.1:8080",
        "http://127.0.0.1:8083",
    )


def test_core_is_reached_where_browsers_reach_it_unless_set() -> None:
    given = {"CONSOLE_KEY": KEY, "BASE_URL": "https://sound.example"}
    assert read(**given).core_url == "https://sound.example"
    assert read(**given, CORE_URL="http://core:8080/").core_url == "http://core:8080"


def test_the_console_is_at_the_root_of_a_secure_address(subtests: pytest.Subtests) -> None:
    """Sessions would travel in clear text, and cookies and links assume the root."""
    for url in ["http://console.example", "https://console.example/console", "https://console.example?x=1", "console"]:
        with subtests.test(url=url):
            (fault,) = faults(CONSOLE_KEY=KEY, CONSOLE_URL=url)
            assert fault.startswith("SOUNDMARK_CONSOLE_URL: must be ")


def test_the_address_is_written_as_browsers_write_it(subtests: pytest.Subtests) -> None:
    """A browser names the origin of each form, and the console takes its own alone."""
    for url, origin in [
        ("https://Console.EXAMPLE", "https://console.example"),
        ("HTTPS://console.example:443/", "https://console.example"),
        ("https://console.example:8443", "https://console.example:8443"),
        ("https://console.example:80", "https://console.example:80"),
        ("http://LocalHost:80", "http://localhost"),
        ("https://[2001:DB8:0::1]:443", "https://[2001:db8::1]"),
    ]:
        with subtests.test(url=url, origin=origin):
            assert read(CONSOLE_KEY=KEY, CONSOLE_URL=url).console_url == origin


def test_a_key_of_its_own_is_used_as_it_is() -> None:
    assert read(CONSOLE_KEY=KEY).sealing_key == bytes(32)
    assert read(CONSOLE_KEY=KEY, MASTER_KEY="B" * 42 + "A").sealing_key == bytes(32)


def test_a_master_key_only_derives_the_key() -> None:
    """Cookies would otherwise be sealed by the key that opens everything in the database."""
    key = read(MASTER_KEY=KEY).sealing_key
    assert key == Sealer(bytes(32), SystemEntropy()).derive("console")
    assert key != bytes(32)
    assert len(key) == 32


def test_one_of_the_two_keys_is_required() -> None:
    assert faults() == ["SOUNDMARK_CONSOLE_KEY or SOUNDMARK_MASTER_KEY must be set"]


@pytest.mark.parametrize("name", ["CONSOLE_KEY", "MASTER_KEY"])
def test_a_malformed_key_is_named_and_not_shown(name: str) -> None:
    (fault,) = faults(**{name: "sesame"})
    assert fault.startswith(f"SOUNDMARK_{name}: must be 32 bytes")
    assert "sesame" not in fault


@pytest.mark.parametrize("name", OIDC)
def test_half_an_identity_provider_is_refused(name: str) -> None:
    (fault,) = faults(CONSOLE_KEY=KEY, **{name: OIDC[name]})
    assert fault.endswith("must both be set, or neither")


@pytest.mark.parametrize("uri", ["https://api.example.org/", "urn:soundmark:api"])
def test_the_api_has_an_absolute_uri(uri: str) -> None:
    assert read(CONSOLE_KEY=KEY, **OIDC, OIDC_RESOURCE=uri).oidc_resource == uri
    assert faults(CONSOLE_KEY=KEY, OIDC_RESOURCE=uri) == ["SOUNDMARK_OIDC_RESOURCE requires SOUNDMARK_OIDC_ISSUER"]


def test_another_name_of_an_api_is_refused(subtests: pytest.Subtests) -> None:
    for uri in ["api", "//api.example.org", "https://api.example.org/#a", "https:", "urn:a b", "é:a"]:
        with subtests.test(uri=uri):
            assert faults(CONSOLE_KEY=KEY, **OIDC, OIDC_RESOURCE=uri) == [
                "SOUNDMARK_OIDC_RESOURCE: must be an absolute URI without a fragment"
            ]


def test_a_client_secret_needs_the_issuer_that_gave_it() -> None:
    assert faults(CONSOLE_KEY=KEY, OIDC_CLIENT_SECRET="confidential") == [
        "SOUNDMARK_OIDC_CLIENT_SECRET requires SOUNDMARK_OIDC_ISSUER"
    ]
    secret = read(CONSOLE_KEY=KEY, **OIDC, OIDC_CLIENT_SECRET="confidential").oidc_client_secret
    assert secret is not None
    assert secret.reveal() == "confidential"


def test_settings_that_do_not_fit_together_are_named_with_all_other_faults() -> None:
    """Whoever mends what is named must not be told of one more each time."""
    found = faults(
        PRIVATE="x",
        CORE_URL="x",
        OIDC_CLIENT_ID="console",
        OIDC_CLIENT_SECRET="confidential",
        OIDC_RESOURCE="urn:api",
        PUBLISHER_URL=PUBLISHER["PUBLISHER_URL"],
    )
    assert sorted(found) == [
        "SOUNDMARK_CONSOLE_KEY or SOUNDMARK_MASTER_KEY must be set",
        "SOUNDMARK_CORE_URL: must be an http or https URL",
        "SOUNDMARK_OIDC_CLIENT_SECRET requires SOUNDMARK_OIDC_ISSUER",
        "SOUNDMARK_OIDC_ISSUER and SOUNDMARK_OIDC_CLIENT_ID must both be set, or neither",
        "SOUNDMARK_OIDC_RESOURCE requires SOUNDMARK_OIDC_ISSUER",
        "SOUNDMARK_PRIVATE: no such setting",
        "SOUNDMARK_PUBLISHER_URL and SOUNDMARK_PUBLISHER_INTEGRATION_ID must both be set, or neither",
    ]


def test_a_setting_that_is_wrong_by_itself_is_named_once(subtests: pytest.Subtests) -> None:
    """Whether it fits the others can be said only once it is right."""
    for name, others in [
        ("CONSOLE_KEY", {}),
        ("OIDC_ISSUER", {"OIDC_CLIENT_ID": "console", "OIDC_CLIENT_SECRET": "confidential", "CONSOLE_KEY": KEY}),
        ("PUBLISHER_URL", {**PUBLISHER, "CONSOLE_KEY": KEY}),
    ]:
        with subtests.test(name=name):
            (fault,) = faults(**{**others, name: "x"})
            assert fault.startswith(f"SOUNDMARK_{name}: ")


def test_people_sign_in_with_the_provider_or_with_a_ticket_or_not(subtests: pytest.Subtests) -> None:
    for given, sign_in in [
        ({}, None),
        (TOKEN, None),
        (TICKETS, None),
        (TOKEN | TICKETS, "ticket"),
        (OIDC, "oidc"),
        (OIDC | TOKEN | TICKETS, "oidc"),
    ]:
        with subtests.test(given=given, sign_in=sign_in):
            assert read(CONSOLE_KEY=KEY, **given).sign_in == sign_in


def test_the_folder_of_tickets_is_absolute() -> None:
    assert read(CONSOLE_KEY=KEY, **TICKETS).console_tickets_path == Path("/srv/tickets")
    (fault,) = faults(CONSOLE_KEY=KEY, CONSOLE_TICKETS_PATH="tickets")
    assert fault == "SOUNDMARK_CONSOLE_TICKETS_PATH: must be an absolute path"


@pytest.mark.parametrize("name", PUBLISHER)
def test_half_a_publisher_is_refused(name: str) -> None:
    """Without the integration, the listening page would tell the publisher of Codes that others measure."""
    assert faults(CONSOLE_KEY=KEY, **{name: PUBLISHER[name]}) == [
        "SOUNDMARK_PUBLISHER_URL and SOUNDMARK_PUBLISHER_INTEGRATION_ID must both be set, or neither"
    ]
    assert read(CONSOLE_KEY=KEY, **PUBLISHER).publisher_integration_id == PUBLISHER["PUBLISHER_INTEGRATION_ID"]


def test_the_integration_of_a_publisher_has_the_shape_of_an_id() -> None:
    (fault,) = faults(CONSOLE_KEY=KEY, **PUBLISHER | {"PUBLISHER_INTEGRATION_ID": "radio"})
    assert fault.startswith("SOUNDMARK_PUBLISHER_INTEGRATION_ID: ")


def test_settings_do_not_print_their_secrets() -> None:
    made = read(CONSOLE_KEY=KEY, MASTER_KEY="B" * 42 + "A", **OIDC, **TOKEN, OIDC_CLIENT_SECRET="confidential")
    shown = repr(made) + str(made)
    assert not [secret for secret in (KEY, "B" * 42, "o" * 43, "confidential") if secret in shown]
