"""The registry of platform settings: which values each setting takes, over HTTP and from the environment."""

import json
import math
from typing import Any, Final

import pytest

from soundmark.kit.settings import PREFIX, SettingsInvalid, environment_name, read_settings
from soundmark.settings.registry import CONFIGURATION, CREDENTIALS, PlatformFallbacks

URLS: Final = ("accounting_base_url", "support_desk_base_url")
IDS: Final = ("accounting_entity_id", "support_desk_mailbox_id")
SWITCHES: Final = ("accounting_enable_invoice_sync", "smtp_secure")
TAKEN: list[tuple[str, Any, Any]] = [
    ("support_desk_base_url", "https://desk.example.org:8443/support/", "https://desk.example.org:8443/support"),
    ("accounting_base_url", "https://[2001:db8::1]/books", "https://[2001:db8::1]/books"),
    ("support_desk_mailbox_id", 1, 1),
    ("accounting_entity_id", 2**31 - 1, 2**31 - 1),
    ("accounting_tva_rate", 0, 0),
    ("accounting_tva_rate", 19.0, 19),
    ("accounting_tva_rate", 8.33, 8.33),
    ("accounting_tva_rate", 100, 100),
    *((name, value, value) for name in SWITCHES for value in (True, False)),
    ("smtp_host", "mail_server", "mail_server"),
    ("smtp_host", "::1", "::1"),
    ("smtp_port", 1, 1),
    ("smtp_port", 65535, 65535),
    ("smtp_from_email", "codes+radio@Studio.local", "codes+radio@Studio.local"),
    ("smtp_from_name", " Radio Nordlicht ☃ ", "Radio Nordlicht ☃"),
    ("smtp_from_name", "x" * 120, "x" * 120),
]
NO_URL: Final = (
    *("ftp://desk.example.org", "http://desk.example.org", "https:///x", "https://user:password@desk.example.org"),
    *("https://@desk.example.org", "https://desk.example.org/?", "https://desk.example.org#", "https://a..b"),
    *("https://desk.example.org:0", "https://desk.example.org:99999", "https://desk.example.org/\n", "https://["),
    *("https://dësk.example.org", "https://169.254.169.254", "https://metadata.google.internal"),
    "https://" + "a." * 1025,
)
REFUSED_TEXTS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(URLS, NO_URL),
    **dict.fromkeys(IDS, ("0", "2147483648", "1.5", "x")),
    **dict.fromkeys(SWITCHES, ("2", "maybe")),
    "accounting_tva_rate": ("-0.01", "100.01", "19.001", "nan", "inf", "x"),
    "smtp_host": (" ", "mail.", "-mail", "mail:25", "[::1]", "x" * 254, "mäil", "mail\n", "a@b", "169.254.1.1"),
    "smtp_port": ("0", "65536", "25.5", "x"),
    "smtp_from_email": (
        *("a", "@b", "a@", "a@b@c", "<a@b>", "a@b\nBcc: c@d", ".a@b", "ä@b", "a@ä", '"a"@b', "a@-b", "a@[127.0.0.1]"),
        *("a" * 65 + "@b", "a@" + "b." * 127 + "c"),
    ),
    "smtp_from_name": (" ", "x" * 121, "a\nb", "a\0"),
}
# Values that exist in JSON and not in an environment.
REFUSED_JSON: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys((*URLS, "smtp_host", "smtp_from_email", "smtp_from_name"), ([], {}, "", True, 7)),
    **dict.fromkeys((*IDS, "smtp_port"), ([], {}, "", True, 0, 2**31, 7.0, "7")),
    **dict.fromkeys(SWITCHES, ([], {}, "", 0, 1, 1.0, "true")),
    "accounting_tva_rate": ([], {}, "", True, -0.01, 100.01, 19.001, math.nan, 10**400, "19"),
}


def read_environment(**values: str) -> PlatformFallbacks:
    environ = {environment_name(name): value for name, value in values.items()}
    return read_settings(PlatformFallbacks, environ, known=PlatformFallbacks.model_fields)


def environment_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_a_value_is_taken_over_http_and_from_the_environment() -> None:
    """With its type: a boolean is no number."""
    for name, value, kept in TAKEN:
        checked = CONFIGURATION[name].check(value)
        from_environment = getattr(read_environment(**{name: environment_text(value)}), name)
        for taken in (checked, from_environment):
            assert (taken, type(taken)) == (kept, type(kept)), (name, value)


@pytest.mark.parametrize("name", CONFIGURATION)
def test_a_text_is_refused_over_http_and_from_the_environment(name: str) -> None:
    for text in REFUSED_TEXTS[name]:
        with pytest.raises(ValueError, match=r".") as over_http:
            pytest.fail(f"{text!r} is taken as {CONFIGURATION[name].check(text)!r}")
        with pytest.raises(SettingsInvalid) as from_environment:
            pytest.fail(f"{text!r} is taken as {read_environment(**{name: text})}")
        (fault,) = from_environment.value.faults
        assert fault.startswith(f"{environment_name(name)}: ")
        if len(text) > 9:
            assert text not in f"{over_http.value} {fault}"


@pytest.mark.parametrize("name", CONFIGURATION)
def test_json_of_another_type_or_range_is_refused(name: str) -> None:
    for value in REFUSED_JSON[name]:
        with pytest.raises(ValueError, match=r"."):
            pytest.fail(f"{value!r} is taken as {CONFIGURATION[name].check(value)!r}")


@pytest.mark.parametrize("name", URLS)
def test_only_the_environment_may_name_a_service_on_this_machine_without_tls(name: str) -> None:
    """Whoever sets the environment runs the machine; an administrator over HTTP does not."""
    url = "http://127.0.0.1:8090"
    assert getattr(read_environment(**{name: url}), name) == url
    with pytest.raises(ValueError, match="must be an https URL"):
        CONFIGURATION[name].check(url)


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_credential_has_the_same_bounds_everywhere(name: str) -> None:
    for text in ("a", "x" * 4096, " spaces stay ", "ü☃😀"):
        assert CREDENTIALS[name].check(text).reveal() == text
        assert getattr(read_environment(**{name: text}), name).reveal() == text
    with pytest.raises(ValueError, match="at most 4096 characters"):
        CREDENTIALS[name].check("x" * 4097)
    with pytest.raises(SettingsInvalid, match="at most 4096 characters"):
        read_environment(**{name: "x" * 4097})


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_credential_has_no_control_characters(name: str) -> None:
    """No header can carry one, so a credential with a pasted line break would fail every call, each time as a fault."""
    for text in ("secret\n", "sec\tret", "\x00", "secret\x7f", "secret\r\n"):
        with pytest.raises(ValueError, match="must have no control characters"):
            CREDENTIALS[name].check(text)
        with pytest.raises(SettingsInvalid, match="must have no control characters"):
            read_environment(**{name: text})


@pytest.mark.parametrize("name", ["card_webhook_secret", "support_webhook_secret"])
def test_a_webhook_secret_is_one_or_two(name: str) -> None:
    """A comma alone would count as configured, and verify no webhook."""
    assert CREDENTIALS[name].check("new , old").reveal() == "new , old"
    for text in (",", " ", "new,", ",old", "one,two,three", "one,,two"):
        with pytest.raises(ValueError, match="must be one secret, or two separated by a comma"):
            CREDENTIALS[name].check(text)
        with pytest.raises(SettingsInvalid, match="must be one secret, or two separated by a comma"):
            read_environment(**{name: text})


def test_a_setting_missing_in_the_environment_is_at_its_default() -> None:
    assert {name: value for name, value in read_environment().model_dump().items() if value is not None} == {
        "accounting_enable_invoice_sync": False,
        "smtp_from_name": "Soundmark",
        "smtp_port": 465,
        "smtp_secure": True,
    }


def test_the_default_port_follows_the_use_of_tls() -> None:
    assert read_environment(smtp_secure="false").smtp_port == 587
    assert read_environment(smtp_secure="false", smtp_port="465").smtp_port == 465


def test_a_wrong_setting_is_a_single_fault() -> None:
    """The default that depends on it is not a second fault."""
    with pytest.raises(SettingsInvalid) as refusal:
        read_environment(smtp_secure="maybe")
    assert [fault.partition(":")[0] for fault in refusal.value.faults] == [f"{PREFIX}SMTP_SECURE"]


def test_every_setting_has_a_line_of_description() -> None:
    for name, field in PlatformFallbacks.model_fields.items():
        assert field.description, name
        assert "\n" not in field.description
