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
    ("support_desk_base_url", "https://desk.example.org", "https://desk.example.org"),
    ("support_desk_base_url", "https://desk.example.org:8443/support/", "https://desk.example.org:8443/support"),
    ("accounting_base_url", "https://[2001:db8::1]/books", "https://[2001:db8::1]/books"),
    ("accounting_base_url", "https://192.0.2.7", "https://192.0.2.7"),
    ("accounting_base_url", "https://books.example.org.", "https://books.example.org."),
    ("support_desk_mailbox_id", 1, 1),
    ("accounting_entity_id", 2**31 - 1, 2**31 - 1),
    ("accounting_tva_rate", 0, 0),
    ("accounting_tva_rate", 19, 19),
    ("accounting_tva_rate", 19.0, 19),
    ("accounting_tva_rate", 5.5, 5.5),
    ("accounting_tva_rate", 100, 100),
    ("accounting_tva_rate", 8.33, 8.33),
    *((name, value, value) for name in SWITCHES for value in (True, False)),
    ("smtp_host", "mail.example.org", "mail.example.org"),
    ("smtp_host", "mail_server", "mail_server"),
    ("smtp_host", "127.0.0.1", "127.0.0.1"),
    ("smtp_host", "::1", "::1"),
    ("smtp_port", 1, 1),
    ("smtp_port", 65535, 65535),
    ("smtp_from_email", "codes+radio@example.org", "codes+radio@example.org"),
    ("smtp_from_email", "codes@Studio.local", "codes@Studio.local"),
    ("smtp_from_name", " Radio Nordlicht ☃ ", "Radio Nordlicht ☃"),
    ("smtp_from_name", "x" * 120, "x" * 120),
]
NO_URL: Final = (
    *("ftp://desk.example.org", "desk.example.org", "https://", "https:///x", "//x.org"),
    *("https://user@desk.example.org", "https://user:password@desk.example.org", "https://@desk.example.org"),
    *("https://desk.example.org?x=1", "https://desk.example.org/?", "https://desk.example.org/#top"),
    *("https://desk.example.org#", "https://desk.example.org:0", "https://desk.example.org:99999"),
    *("https://desk example.org", "https://desk.example.org/\n", "https://dësk.example.org", "https://a..b"),
    *(
        "https://169.254.169.254",
        "https://[::ffff:a9fe:a9fe]",
        "https://0xa9fea9fe",
        "https://metadata.google.internal",
    ),
    *(" https://a", "https://[", "https://" + "a." * 1025, "http://desk.example.org"),
)
REFUSED_TEXTS: list[tuple[str, str]] = [
    *((name, text) for name in URLS for text in NO_URL),
    *((name, text) for name in IDS for text in ("0", "-1", "2147483648", "1.5", "x")),
    *(("accounting_tva_rate", text) for text in ("-0.01", "100.01", "19.001", "nan", "inf", "x")),
    *((name, text) for name in SWITCHES for text in ("2", "maybe")),
    *(("smtp_host", text) for text in (" ", "mail.", ".mail", "-mail", "a b", "mail:25", "[::1]", "x" * 254)),
    *(("smtp_host", text) for text in ("mäil", "mail\0", "mail\n", "https://mail", "fe80::1%eth0", "a@b")),
    *(("smtp_host", text) for text in ("169.254.1.1", "fe80::1", "fd00:ec2::254", "2852039166")),
    *(("smtp_port", text) for text in ("0", "65536", "-1", "25.5", "x")),
    *(("smtp_from_email", text) for text in ("a", "@b", "a@", "a@b@c", "a b@c", "<a@b>", "a@b\nBcc: c@d", ".a@b")),
    *(("smtp_from_email", text) for text in ("ä@b", "a@ä", "a" * 65 + "@b", "a@" + "b." * 127 + "c", "a..b@c")),
    *(("smtp_from_email", text) for text in ('"a"@b', "a@-b", "a@b_c", "a@[127.0.0.1]")),
    *(("smtp_from_name", text) for text in (" ", "x" * 121, "a\nb", "a\0", "a\r\nBcc: x")),
]
# Values that exist in JSON and not in an environment.
REFUSED_JSON: list[tuple[str, Any]] = [
    *((name, value) for name in CONFIGURATION for value in ([], {}, "")),
    *((name, value) for name in CONFIGURATION if name not in SWITCHES for value in (True,)),
    *((name, value) for name in (*URLS, "smtp_host", "smtp_from_email", "smtp_from_name") for value in (7, 1.5)),
    *((name, value) for name in (*IDS, "smtp_port") for value in (0, 2**31, 7.0, "7")),
    *(("accounting_tva_rate", value) for value in (-0.01, 100.01, 19.001, math.nan, 10**400, "19")),
    *((name, value) for name in SWITCHES for value in (0, 1, 1.0, "true")),
    *((name, "http://127.0.0.1:8090") for name in URLS),
]


def read_environment(**values: str) -> PlatformFallbacks:
    environ = {environment_name(name): value for name, value in values.items()}
    return read_settings(PlatformFallbacks, environ, known=PlatformFallbacks.model_fields)


def environment_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize(("name", "value", "kept"), TAKEN, ids=repr)
def test_a_value_is_taken_over_http_and_from_the_environment(name: str, value: Any, kept: Any) -> None:
    checked = CONFIGURATION[name].check(value)
    assert (checked, type(checked)) == (kept, type(kept)), "a boolean is no number"
    from_environment = getattr(read_environment(**{name: environment_text(value)}), name)
    assert (from_environment, type(from_environment)) == (kept, type(kept))


@pytest.mark.parametrize(("name", "text"), REFUSED_TEXTS, ids=lambda v: repr(v)[:40])
def test_a_text_is_refused_over_http_and_from_the_environment(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=r".") as over_http:
        CONFIGURATION[name].check(text)
    with pytest.raises(SettingsInvalid) as from_environment:
        read_environment(**{name: text})
    (fault,) = from_environment.value.faults
    assert fault.startswith(f"{environment_name(name)}: ")
    if len(text) > 9:
        assert text not in f"{over_http.value} {fault}"


@pytest.mark.parametrize(("name", "value"), REFUSED_JSON, ids=lambda v: repr(v)[:40])
def test_json_of_another_type_or_range_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        CONFIGURATION[name].check(value)


@pytest.mark.parametrize("name", URLS)
@pytest.mark.parametrize("url", ["http://127.0.0.1:8090", "http://localhost:8090", "http://[::1]:8090"])
def test_only_the_environment_may_name_a_service_on_this_machine_without_tls(name: str, url: str) -> None:
    """Whoever sets the environment runs the machine; an administrator over HTTP does not."""
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
