"""Hosts, e-mail addresses and URLs: limits that the tests of the settings do not show."""

import pytest

from soundmark.kit.text.validation import (
    check_ascii_email,
    check_host,
    check_mail_name,
    check_url,
    is_loopback_host,
    is_secure_url,
    parse_email,
)


def test_a_secure_url_cannot_be_changed_on_the_way(subtests: pytest.Subtests) -> None:
    for url, is_secure in [
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
    ]:
        with subtests.test(url=url, is_secure=is_secure):
            assert is_secure_url(url) is is_secure


def test_a_url_is_of_the_kinds_that_its_scheme_and_host_allow(subtests: pytest.Subtests) -> None:
    for url, kinds in [
        ("https://a.example", {"https", "secure", "http"}),
        ("http://127.0.0.1:8080", {"secure", "http"}),
        ("http://audio_1:8082", {"http"}),
        ("http://audio.default.svc.cluster.local.:8082", {"http"}),
        ("ftp://a.example", set()),
    ]:
        with subtests.test(url=url, kinds=kinds):
            for kind in ("https", "secure", "http"):
                if kind in kinds:
                    assert check_url(url, kind) == url
                else:
                    with pytest.raises(ValueError, match="must be an http"):
                        check_url(url, kind)


def test_no_kind_of_url_has_credentials_a_query_or_a_fragment(subtests: pytest.Subtests) -> None:
    for kind in ["https", "secure", "http"]:
        for url in ["https://a:b@c", "https://a?", "https://a#", "https://a/?b=c"]:
            refused = pytest.raises(ValueError, match="without credentials, query or fragment")
            with subtests.test(kind=kind, url=url), refused:
                check_url(url, kind)


def test_a_loopback_host_is_this_machine(subtests: pytest.Subtests) -> None:
    for host in ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LocalHost"]:
        with subtests.test(host=host):
            assert is_loopback_host(host)


def test_no_other_host_is_this_machine(subtests: pytest.Subtests) -> None:
    for host in ["10.0.0.1", "localhost.example", "mail", ""]:
        with subtests.test(host=host):
            assert not is_loopback_host(host)


def test_a_host_is_a_name_or_an_ip_address(subtests: pytest.Subtests) -> None:
    for host in ["a" * 63 + ".example", "x.y", "A-1", "_dmarc.example", "2001:db8::1"]:
        with subtests.test(host=host):
            assert check_host(host) == host


def test_another_text_is_no_host(subtests: pytest.Subtests) -> None:
    for host in ["", ".", "a" * 64, "a-", "a..b", "ä", "[::1]", "a:1", "a" * 62 + ".b" * 96]:
        with subtests.test(host=host), pytest.raises(ValueError, match="must be a host name or an IP address"):
            check_host(host)


def test_mail_servers_are_greeted_by_a_name_or_an_address_in_brackets(subtests: pytest.Subtests) -> None:
    for text, name in [
        ("soundmark.example.org", "soundmark.example.org"),
        ("mail", "mail"),
        ("192.0.2.1", "[192.0.2.1]"),
        ("[192.0.2.1]", "[192.0.2.1]"),
        ("2001:db8::1", "[IPv6:2001:db8::1]"),
        ("[IPv6:2001:db8::1]", "[IPv6:2001:db8::1]"),
    ]:
        with subtests.test(text=text, name=name):
            assert check_mail_name(text) == name


def test_another_text_is_no_greeting(subtests: pytest.Subtests) -> None:
    for text in ["", "a b", "a\r\nRSET", "mail_1", "ä.example", "[mail]", "[2001:db8::1]", "[192.0.2.1", "1.2.3", "a."]:
        refused = pytest.raises(ValueError, match="must be a domain name or an IP address")
        with subtests.test(text=text), refused:
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
