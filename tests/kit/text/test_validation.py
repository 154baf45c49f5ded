"""Hosts, e-mail addresses and URLs: limits that the tests of the settings do not show."""

import pytest

from soundmark.kit.text.validation import (
    UrlKind,
    check_ascii_email,
    check_host,
    check_mail_name,
    check_url,
    is_loopback_host,
    is_secure_url,
    parse_email,
)


@pytest.mark.parametrize(
    ("url", "is_secure"),
    [
        ("https://id.example", True),
        ("https://id.example:8443/realms/x", True),
        ("https://id.example/keys?p=1", True),
        ("http://127.0.0.1:8080/realms/x", True),
        ("http://127.9.9.9/", True),
        ("http://[::1]:8080/", True),
        ("http://localhost:8080/", True),
        ("http://localhost.example/", False),
        ("http://127.0.0.1.example/", False),
        ("http://10.0.0.1/", False),
        ("ftp://127.0.0.1/", False),
        ("https://", False),
        ("https:///path", False),
        ("https://a@b", False),
        ("https://id.example/#a", False),
        ("https://id.example:x", False),
        ("https://id.example:0", False),
        ("https://id.example/ä", False),
        ("https://id.example/ x", False),
        ("https://id.example/\n", False),
        ("https://[::1", False),
        ("", False),
    ],
)
def test_a_secure_url_cannot_be_changed_on_the_way(url: str, *, is_secure: bool) -> None:
    assert is_secure_url(url) is is_secure


@pytest.mark.parametrize(
    ("url", "kinds"),
    [
        ("https://a.example", {"https", "secure", "http"}),
        ("http://127.0.0.1:8080", {"secure", "http"}),
        ("http://audio_1:8082", {"http"}),
        ("http://audio.default.svc.cluster.local.:8082", {"http"}),
        ("ftp://a.example", set()),
    ],
)
def test_a_url_is_of_the_kinds_that_its_scheme_and_host_allow(url: str, kinds: set[UrlKind]) -> None:
    for kind in ("https", "secure", "http"):
        if kind in kinds:
            assert check_url(url, kind) == url
        else:
            with pytest.raises(ValueError, match="must be an http"):
                check_url(url, kind)


@pytest.mark.parametrize("kind", ["https", "secure", "http"])
@pytest.mark.parametrize("url", ["https://a:b@c", "https://a?", "https://a#", "https://a/?b=c"])
def test_no_kind_of_url_has_credentials_a_query_or_a_fragment(url: str, kind: UrlKind) -> None:
    with pytest.raises(ValueError, match="without credentials, query or fragment"):
        check_url(url, kind)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LocalHost"])
def test_a_loopback_host_is_this_machine(host: str) -> None:
    assert is_loopback_host(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "localhost.example", "mail", ""])  # noqa: S104 - compared
def test_no_other_host_is_this_machine(host: str) -> None:
    assert not is_loopback_host(host)


@pytest.mark.parametrize("host", ["a" * 63 + ".example", "x.y", "A-1", "_dmarc.example", "2001:db8::1"])
def test_a_host_is_a_name_or_an_ip_address(host: str) -> None:
    assert check_host(host) == host


@pytest.mark.parametrize("host", ["", ".", "a" * 64, "a-", "a..b", "ä", "[::1]", "a:1", "a" * 62 + ".b" * 96])
def test_another_text_is_no_host(host: str) -> None:
    with pytest.raises(ValueError, match="must be a host name or an IP address"):
        check_host(host)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("soundmark.example.org", "soundmark.example.org"),
        ("mail", "mail"),
        ("192.0.2.1", "[192.0.2.1]"),
        ("[192.0.2.1]", "[192.0.2.1]"),
        ("2001:db8::1", "[IPv6:2001:db8::1]"),
        ("[IPv6:2001:db8::1]", "[IPv6:2001:db8::1]"),
    ],
)
def test_mail_servers_are_greeted_by_a_name_or_an_address_in_brackets(text: str, name: str) -> None:
    assert check_mail_name(text) == name


@pytest.mark.parametrize(
    "text", ["", "a b", "a\r\nRSET", "mail_1", "ä.example", "[mail]", "[2001:db8::1]", "[192.0.2.1", "1.2.3", "a."]
)
def test_another_text_is_no_greeting(text: str) -> None:
    with pytest.raises(ValueError, match="must be a domain name or an IP address"):
        check_mail_name(text)


def test_an_address_in_any_language_is_parsed_and_only_an_ascii_one_sends() -> None:
    for text in ("ärger@example.org", "ada@straße.example"):
        assert parse_email(text).local_part == text.partition("@")[0]
        with pytest.raises(ValueError, match="in ASCII"):
            check_ascii_email(text)
    assert check_ascii_email("ada@Radio.local") == "ada@Radio.local"


def test_a_refused_address_is_not_repeated() -> None:
    with pytest.raises(ValueError, match=r"^must be an e-mail address$"):
        parse_email("sesame at example.org")
