"""What MkDocs does differently for our site: the language of each page, and no script inside a page.

The console serves the site under the same Content-Security-Policy as its own pages, which runs no inline script.
"""

import hashlib
import re
from pathlib import Path
from typing import Any, Final

_INLINE: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)
# What the theme would fetch for old browsers, for diagrams and about a repository; our pages need none of it.
_ELSEWHERE: Final = re.compile(r"https://(?:unpkg\.com|api\.github\.com)/[\w./@-]*")
_SOURCE_MAP: Final = re.compile(r"^//# sourceMappingURL=.*$", re.MULTILINE)
_scripts: Final[dict[str, str]] = {}


def on_config(config: Any, **_: Any) -> Any:
    """Let the navigation name a folder, which stands for all its pages."""
    config.nav = _list_folders(config.nav, Path(config.docs_dir))
    return config


def on_page_context(context: Any, page: Any, config: Any, **_: Any) -> Any:
    """Give a page below `fr/` the French words of the theme."""
    config.theme["language"] = "fr" if page.file.src_uri.startswith("fr/") else "en"
    return context


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Move the scripts of a page into files."""
    return _move_scripts(output, "../" * page.file.dest_uri.count("/"))


def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    """Move the scripts of a page without a source into files."""
    return _move_scripts(output_content, "") if template_name.endswith(".html") else output_content


def on_post_build(config: Any, **_: Any) -> None:
    """Write the scripts; leave out the map for search engines, which would name the day of the build."""
    site = Path(config.site_dir)
    for name, script in _scripts.items():
        (site / name).write_text(script, encoding="utf-8")
    for path in (site / "sitemap.xml", site / "sitemap.xml.gz", *site.rglob("*.map")):
        path.unlink(missing_ok=True)
    for path in site.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        path.write_text(_ELSEWHERE.sub("about:blank", _SOURCE_MAP.sub("", text)), encoding="utf-8")


def _move_scripts(page: str, root: str) -> str:
    def move(match: re.Match[str]) -> str:
        name = f"assets/javascripts/page-{hashlib.sha256(match[1].encode()).hexdigest()[:12]}.js"
        _scripts[name] = match[1]
        return f'<script src="{root}{name}"></script>'

    return _INLINE.sub(move, page)


def _list_folders(nav: Any, pages: Path) -> Any:
    match nav:
        case list():
            return [_list_folders(each, pages) for each in nav]
        case dict():
            return {title: _list_folders(each, pages) for title, each in nav.items()}
        case str() if nav.endswith("/"):
            names = sorted(path.name for path in (pages / nav).glob("*.md") if path.name != "index.md")
            first = ["index.md"] if (pages / nav / "index.md").exists() else []
            return [f"{nav}{name}" for name in (*first, *names)]
        case _:
            return nav
