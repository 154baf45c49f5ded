"""The documentation site that `make docs` built: each link, picture and script is there, and nothing is elsewhere."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import pytest
from support.processes.guide_blocks import ROOT, read_page

from soundmark.core.published.catalogue import CATALOGUE

SITE: Final = ROOT / "build" / "guide"
# What a browser fetches by itself; a link is followed by a person.
LOADED: Final = {"src", "srcset", "poster", "data"}


class Page(HTMLParser):
    """What a page refers to, and what its Content-Security-Policy would forbid."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.language = ""
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.forbidden: list[str] = []
        self._path = path
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.add(given.get("id", ""))
        self.loaded += [given[name] for name in LOADED & given.keys()]
        if "href" in given:
            (self.links if tag == "a" else self.loaded).append(given["href"])
        if tag == "html":
            self.language = given["lang"]
        is_inline = tag == "script" and "src" not in given and given.get("type") != "application/json"
        if tag in {"style", "iframe"} or is_inline or any(name == "style" or name.startswith("on") for name in given):
            self.forbidden.append(f"{self._path.name}: {tag} {given}")


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    """Every page of the site."""
    assert (SITE / "index.html").exists(), "run `make docs`"
    return {path: Page(path) for path in sorted(SITE.rglob("*.html"))}


def test_every_link_picture_and_script_is_there(pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        folder = SITE if path.name == "404.html" else path.parent
        for reference in [*page.links, *page.loaded]:
            parts = urlsplit(reference)
            if parts.scheme or parts.netloc:
                continue
            # The page of a missing one is shown at any address, so it names everything from the root.
            named = SITE / parts.path.lstrip("/") if parts.path.startswith("/") else folder / unquote(parts.path)
            target = path if not parts.path else named.resolve()
            target = target / "index.html" if target.is_dir() else target
            is_there = target.is_file() and (not parts.fragment or _has(pages, target, unquote(parts.fragment)))
            broken += [] if is_there else [f"{path.relative_to(SITE)}: {reference}"]
    assert broken == []


def test_the_places_that_the_console_links_are_there(pages: dict[Path, Page]) -> None:
    templates = (ROOT / "src" / "soundmark" / "console" / "templates").rglob("*.html")
    links = {link for path in templates for link in re.findall(r"""["']/guide/([^"']*)""", path.read_text("utf-8"))}
    assert links >= {"", "fr/", "sound.html#what-a-loudspeaker-needs"}
    for link in links:
        page, _, place = link.partition("#")
        assert place in {"", *pages[SITE / (page if page.endswith(".html") else f"{page}index.html")].ids}, link


def _has(pages: dict[Path, Page], target: Path, fragment: str) -> bool:
    return target not in pages or fragment in pages[target].ids or fragment.startswith("__")


def test_nothing_is_fetched_from_elsewhere(pages: dict[Path, Page]) -> None:
    assert [each for page in pages.values() for each in page.loaded if urlsplit(each).netloc] == []
    for path in [*SITE.rglob("*.css"), *SITE.rglob("*.js")]:
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"url\(\s*[\"']?https?:|@import\s+[\"']?https?:", text) == [], path
        # Names of the SVG standard, licences, and authors. The languages of the search only quote where they are from.
        is_code = path.suffix == ".js" and "lunr" not in path.parts
        urls = set(re.findall(r"https?://([\w.-]+)", text)) if is_code else set()
        assert urls <= {"www.w3.org", "lunrjs.com", "tartarus.org", "bit.ly", "clipboardjs.com"}, path


def test_no_page_needs_a_weaker_policy_than_the_consoles(pages: dict[Path, Page]) -> None:
    assert [each for page in pages.values() for each in page.forbidden] == []


def test_the_start_pages_are_french_too(pages: dict[Path, Page]) -> None:
    languages = {path.relative_to(SITE).as_posix(): page.language for path, page in pages.items()}
    french = {name for name, language in languages.items() if language == "fr"}
    assert french == {"fr/index.html", "fr/premiers-pas.html"}


def test_the_commands_of_the_french_pages_are_those_of_readme() -> None:
    blocks = [block for _, block, _ in read_page("docs/fr/premiers-pas.md")[1]]
    assert blocks == [block for language, block, _ in read_page("README.md")[1] if language == "sh"]


def test_search_finds_every_kind_of_page() -> None:
    index = json.loads((SITE / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {each["location"].partition("#")[0] for each in index["docs"]}
    kinds = {"index.html", "guides/issuing.html", "settings.html", "glossary.html", "trust.html", "fr/index.html"}
    assert kinds <= found
    assert {"reference/problems.html", "reference/api/codes.html"} <= found


def test_every_operation_and_every_problem_has_a_place(pages: dict[Path, Page]) -> None:
    assert CATALOGUE.keys() <= pages[SITE / "reference" / "problems.html"].ids
    document = json.loads((SITE / "reference" / "api" / "openapi.json").read_text(encoding="utf-8"))
    api = "".join(path.read_text(encoding="utf-8") for path in (SITE / "reference" / "api").glob("*.html"))
    operations = [
        f"<code>{method.upper()} {path}</code>"
        for path, methods in document["paths"].items()
        for method in methods.keys() & {"get", "post", "put", "patch", "delete"}
    ]
    assert [each for each in operations if each not in api] == []
    assert len(operations) > 50
