"""URLs that somebody else chose: what may be set."""

import pytest

from soundmark.kit.http.outbound.public_url import PublicUrl, judge_url, parse_public_url

REFUSED = {
    "": "no URL",
    "hooks.example.org": "no scheme",
    "http://hooks.example.org/": "not https",
    "https:///path": "no host",
    "https://user@hooks.example.org/": "a user",
    "https://@hooks.example.org/": "empty credentials",
    "https://hooks.example.org\\@127.0.0.1/": "a backslash",
    "https://hooks.example.org#fragment": "a fragment",
    "https://hooks.example.org:0/": "port 0",
    "https://hooks.example.org:65536/": "a port too large",
    "https://hooks.example.org:/": "an empty port",
    "https://hooks.example.org/a b": "a space",
    "https://hooks.example.org/\n": "a line break",
    "https://hooks.exa\tmple.org/": "a tab, which urlsplit removes",
    "https://hooks.example.org/\x00": "a null byte",
    "https://hooks.example.org/caf\u00e9": "no ASCII",
    "https://b\u00fccher.example/": "a name in the U-label form",
    "https://hooks.example.org./": "an absolute name",
    "https://hooks..example.org/": "an empty label",
    "https://-hooks.example.org/": "a label that begins with a hyphen",
    f"https://{'a' * 64}.example.org/": "a label too long",
    f"https://{'a.' * 127}org/": "a name too long",
    "https://localhost/": "this machine",
    "https://hooks.localhost/": "a name below localhost",
    "https://127.0.0.1/": "loopback",
    "https://169.254.169.254/latest/meta-data": "link-local",
    "https://127.1/": "two parts",
    "https://2130706433/": "decimal",
    "https://0x7f000001/": "hexadecimal",
    "https://0x/": "an empty hexadecimal number",
    "https://8.8.8.010/": "a leading zero",
    "https://hooks.example.org.1/": "a name that ends like an address",
    "https://256.8.8.8/": "a part too large",
    "https://%31%32%37.0.0.1/": "a percent-encoded host",
    "https://127\u30020\u30020\u30021/": "ideographic dots",
    "https://[::1]/": "loopback in IPv6",
    "https://[::ffff:127.0.0.1]/": "a mapped address",
    "https://[fe80::1%25eth0]/": "a zone",
    "https://[1.1.1.1]/": "IPv4 in brackets",
    "https://[hooks.example.org]/": "a name in brackets",
    "https://[2606:4700:4700::1111/": "no closing bracket",
    "https://2606:4700:4700::1111/": "no brackets",
    "https://hooks.example.org/" + "a" * 2023: "too long",
}


def test_a_url_that_may_lead_inside_is_refused_without_being_repeated(subtests: pytest.Subtests) -> None:
    for url, why in REFUSED.items():
        with subtests.test(why):
            with pytest.raises(ValueError, match=r"^must ") as refused:
                judge_url(url, allow_loopback=False)
            assert "example" not in str(refused.value)


def test_a_public_url_is_split_into_its_parts(subtests: pytest.Subtests) -> None:
    for url, parts in [
        ("https://hooks.example.org", PublicUrl("https", "hooks.example.org", 443, "/")),
        ("HTTPS://Hooks.Example.ORG/A?b=%20c", PublicUrl("https", "hooks.example.org", 443, "/A?b=%20c")),
        ("https://hooks.example.org?x", PublicUrl("https", "hooks.example.org", 443, "/?x")),
        ("https://hooks.example.org:8443/a//b", PublicUrl("https", "hooks.example.org", 8443, "/a//b")),
        ("https://xn--bcher-kva.example/", PublicUrl("https", "xn--bcher-kva.example", 443, "/")),
        ("https://8.8.8.8/", PublicUrl("https", "8.8.8.8", 443, "/")),
        ("https://[2606:4700:4700::1111]:65535/", PublicUrl("https", "2606:4700:4700::1111", 65535, "/")),
        ("https://hooks.example.org/" + "a" * 2022, PublicUrl("https", "hooks.example.org", 443, "/" + "a" * 2022)),
    ]:
        with subtests.test(url=url, parts=parts):
            assert parse_public_url(url, allow_loopback=False) == parts


def test_this_machine_is_accepted_where_that_is_allowed(subtests: pytest.Subtests) -> None:
    for url in ["http://localhost:8080/a", "http://127.0.0.1/", "https://127.8.8.8/", "http://[::1]/"]:
        with subtests.test(url=url):
            judge_url(url, allow_loopback=True)
            with pytest.raises(ValueError, match=r"^must "):
                judge_url(url, allow_loopback=False)


def test_only_this_machine_is_accepted_besides_where_that_is_allowed(subtests: pytest.Subtests) -> None:
    for url in [
        "http://10.0.0.1/",
        "https://10.0.0.1/",
        "http://hooks.example.org/",
        "https://a.localhost/",
        "http://127.1/",
    ]:
        with subtests.test(url=url), pytest.raises(ValueError, match=r"^must "):
            judge_url(url, allow_loopback=True)


def test_the_host_header_names_a_port_only_if_it_is_not_the_usual_one(subtests: pytest.Subtests) -> None:
    for url, authority in [
        ("https://hooks.example.org/", "hooks.example.org"),
        ("https://hooks.example.org:443/", "hooks.example.org"),
        ("https://hooks.example.org:80/", "hooks.example.org:80"),
        ("https://[2606:4700:4700::1111]/", "[2606:4700:4700::1111]"),
    ]:
        with subtests.test(url=url, authority=authority):
            assert parse_public_url(url, allow_loopback=False).authority == authority
