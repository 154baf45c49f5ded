"""The links of intents: the page names the host that a browser would open, or shows no link."""

import itertools
import json
import subprocess

import pytest
from soundmark_sdk import Intent
from support.identity.real_oidc_provider import NODE

from soundmark.console.intents import find_link, write_headline

# Node.js has the URL parser that browsers have: both follow the URL Standard.
PARSE = """
const urls = JSON.parse(require('fs').readFileSync(0));
const parse = (url) => { try { return new URL(url).host; } catch { return null; } };
console.log(JSON.stringify(urls.map(parse)));
"""


def find_host(url: str) -> str | None:
    link = find_link(Intent("link", "open", {"url": url}))
    return None if link is None else link.host


def parse_as_browsers(urls: list[str]) -> list[str | None]:
    done = subprocess.run([NODE, "-e", PARSE], input=json.dumps(urls), capture_output=True, text=True, check=True)
    hosts: list[str | None] = json.loads(done.stdout)
    return hosts


HOSTS = {
    "EXAMPLE.org": "example.org",
    "example.org:8443": "example.org:8443",
    "faß.de": "xn--fa-hia.de",  # IDNA 2003 leads to fass.de, which is somebody else's.
    "STRAẞE.de": "xn--strae-oqa.de",
    "βόλος.com": "xn--nxasmm1c.com",
    "ΒΌΛΟΣ.com": "xn--nxasmq6b.com",  # Python's lower() makes the last letter another one.
    "www.раураl.com": "www.xn--l-7sba6dbr.com",
    "Å．example。org": "xn--5ca.example.org",
    "１２７.0.0.1": "127.0.0.1",
    "[2001:DB8:0::1]:8443": "[2001:db8::1]:8443",
}
NO_PLAIN_HOSTS = (
    "",
    "ex%61mple.org",
    "fa%C3%9F.de",
    "0x7f.1",
    "127.1",
    "2130706433",
    "127.0.0.1.",
    "क्\u200dष.example",  # With an invisible joiner.
    "a\u200db.example",
    "so\u00adft.example",
    "[::1",
    "[::1%25eth0]",
    "[::1]a",
    "exa mple.org",
    "example.org:99999",
    "bank.example@evil.example",
    "bank.example:443@evil.example",
    "bank.example:@evil.example",
    "[::1]:@evil.example",
    "bank.example＠evil.example",
    "℀.example",
    "a" * 64 + "ü.example",
)


def test_a_link_names_the_host_that_a_browser_opens() -> None:
    urls = [f"https://{host}/" for host in HOSTS]

    assert [find_host(url) for url in urls] == list(HOSTS.values())
    assert parse_as_browsers(urls) == list(HOSTS.values())


def test_a_headline_is_the_host_and_what_follows_it() -> None:
    """A short host is also a part of `https://`."""
    for host in ("example.org", "s", "t", "http", "p:8443"):
        headline = write_headline(Intent("link", "open", {"url": f"https://{host}/tonight?a=1#b"}))
        assert (headline.host, headline.text) == (host, "/tonight?a=1#b")


def test_a_host_that_a_browser_may_read_otherwise_is_no_link(subtests: pytest.Subtests) -> None:
    for host in NO_PLAIN_HOSTS:
        with subtests.test(ascii(host)):
            assert find_host(f"https://{host}/") is None


def find_misnamed(urls: list[str]) -> dict[str, tuple[str, str]]:
    """Return the URLs that lead a browser to another host than the page names."""
    opened = parse_as_browsers(urls)
    named = [(url, find_host(url), host) for url, host in zip(urls, opened, strict=True)]
    assert sum(ours is not None for _, ours, _ in named) > len(urls) / 200
    return {url: (ours, host) for url, ours, host in named if ours is not None and host is not None and ours != host}


def test_no_letter_leads_a_browser_to_another_host_than_the_page_names() -> None:
    letters = [chr(code) for code in range(0x80, 0x10000) if chr(code).isprintable()]

    assert find_misnamed([f"https://{letter}a.example/" for letter in letters]) == {}


def test_no_punctuation_leads_a_browser_to_another_host_than_the_page_names() -> None:
    pieces = ("a", "b.example", ":", "@", "[::1]", "]", "%40", "\\", "?", "#", "1", "é", "＠", "．")
    authorities = map("".join, itertools.product(pieces, repeat=4))

    assert find_misnamed([f"https://{authority}/" for authority in authorities]) == {}
