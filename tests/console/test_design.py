"""The page of all parts, and the icons that they show."""

import re
import sys
from pathlib import Path

from support.console.client import ConsoleClient
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People

import soundmark.console

FOLDER = Path(soundmark.console.__file__).parent
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from vendor_icons import ICONS  # noqa: E402 - a script is no package

_NAME = re.compile(r"""["']([a-z][a-z0-9-]*)["']""")
_SELECTOR = re.compile(r"(?:\A|[{}]|\*/)\s*([^{}/]+)\{")
_CLASS = re.compile(r"\.([a-z][\w-]*)")
_SHEETS = ("components", "controls", "data", "charts")
_SHEET_LINES_MAX = 200
# What scripts add, and what one page alone has.
_ELSEWHERE = {"copy", "column", "front", "exports"}


async def test_the_operator_sees_every_part_and_everybody_else_no_page(
    operator: ConsoleClient, visitors: ConsoleClient, people: People, clock: FakeClock
) -> None:
    page = await operator.get("/design")
    assert page.status == 200
    classes = {name for each in page.find_all(".//*[@class]") for name in str(each.get("class")).split()}
    assert {"page-head", "tile", "cards", "filter-bar", "empty", "banner", "menu", "tabs", "id", "skeleton"} <= classes
    assert {"card", "side", "split", "timeline", "checklist", "stack", "cluster", "final", "status"} <= classes
    assert page.find_all(".//dialog")
    assert {"chart", "series-events", "series-estimated_reach"} <= classes
    styled = {
        name
        for sheet in _SHEETS
        for selector in _SELECTOR.findall((FOLDER / f"static/css/{sheet}.css").read_text(encoding="utf-8"))
        for name in _CLASS.findall(selector)
        if not name.startswith(("status-", "series-"))
    }
    assert styled - classes - _ELSEWHERE == set(), "each part that has a style is there"

    visitors.sign_in_as(people, "alice", clock.now(), realm_access={"roles": ["svc_platform_admin"]})
    refused = await visitors.get("/design")
    assert (refused.status, refused.trouble) == (404, "page_not_found")


def test_the_sprite_has_the_icons_of_its_script_and_each_is_shown_somewhere() -> None:
    sprite = (FOLDER / "static/icons/sprite.svg").read_text(encoding="utf-8")
    sources = [*FOLDER.rglob("*.html"), *FOLDER.rglob("*.py"), *(FOLDER / "static").rglob("*.js")]
    written = {name for path in sources for name in _NAME.findall(path.read_text(encoding="utf-8"))}

    assert re.findall(r'<symbol id="([^"]+)"', sprite) == sorted(ICONS)
    assert set(ICONS) - written == set()
    shown = {name for path in FOLDER.rglob("*.html") for name in re.findall(r'icon\("([^"]+)"\)', path.read_text())}
    assert shown - set(ICONS) == set()
    assert "ISC License" in (FOLDER / "static/icons/LICENSE").read_text(encoding="utf-8")


def test_no_style_sheet_is_long_or_names_a_colour_but_the_tokens() -> None:
    for path in (FOLDER / "static/css").glob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= _SHEET_LINES_MAX, path.name
        if path.name != "tokens.css":
            assert re.findall(r"#[0-9a-f]{6}\b", text) == [], path.name


def test_a_part_of_a_style_is_a_token_that_exists() -> None:
    sheets = {path.name: path.read_text(encoding="utf-8") for path in (FOLDER / "static/css").glob("*.css")}
    known = set(re.findall(r"(--[\w-]+):", sheets["tokens.css"]))
    used = {name for text in sheets.values() for name in re.findall(r"var\((--[\w-]+)\)", text)}

    assert used - known == set()


def test_a_style_sheet_names_only_elements_that_pages_have() -> None:
    """Two selectors that ran into one another, such as `tdtr`, are valid CSS, and nothing has their style."""
    sources = [*FOLDER.rglob("*.html"), *(FOLDER / "static").rglob("*.js")]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    known = {*re.findall(r"<([a-z][a-z0-9]*)", text), *re.findall(r'createElement\(\s*"([a-z0-9]+)"', text)}
    for path in (FOLDER / "static/css").glob("*.css"):
        sheet = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        selectors = [each for each in re.findall(r"([^{}]+)\{", sheet) if "@" not in each]
        named = {
            name
            for each in selectors
            for name in re.findall(r"(?<![\w.#:-])[a-z][a-z0-9]*(?![\w-])", re.sub(r"\[[^]]*\]", "", each))
        }
        assert named - known <= {"to", "even"}, path.name  # Of keyframes, and of nth-of-type.
