"""The documentation site at `/guide`: served from the built folder, or a page that says how to build it."""

from pathlib import Path

import pytest
from console.conftest import console_settings
from support.api.raw_requests import send_raw
from support.console.client import ConsoleClient
from support.processes.running_apps import served_in_thread

from soundmark.console import documentation
from soundmark.console.app import create_app


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small site in place of the built one."""
    folder = tmp_path / "guide"
    (folder / "fr").mkdir(parents=True)
    (folder / "index.html").write_text("<title>The guide</title>")
    (folder / "fr" / "index.html").write_text("<title>Le guide</title>")
    (folder / "404.html").write_text("<title>No such page</title>")
    (tmp_path / "secret").write_text("not served")
    monkeypatch.setattr(documentation, "_IN_PACKAGE", tmp_path / "none")
    monkeypatch.setattr(documentation, "_IN_REPOSITORY", folder)
    return folder


@pytest.mark.usefixtures("site")
async def test_anybody_reads_the_guide_under_the_consoles_policy(operator: ConsoleClient) -> None:
    led = await operator.other().get("/guide")
    assert (led.status, led.headers["location"]) == (308, "/guide/")
    for path, title in (("/guide/", "The guide"), ("/guide/index.html", "The guide"), ("/guide/fr/", "Le guide")):
        page = await operator.other().get(path)
        assert (page.status, title in page.html) == (200, True), path
        assert "script-src 'self'; style-src 'self'" in page.headers["content-security-policy"]
        assert page.headers["cache-control"] == "no-cache"
    missing = await operator.other().get("/guide/none.html")
    assert (missing.status, "No such page" in missing.html) == (404, True)


async def test_a_guide_that_was_not_built_is_a_clear_page_until_it_is(operator: ConsoleClient, site: Path) -> None:
    """`make up` builds it while the console serves. Until then, as in the container image, no page leads there."""
    for language, path in (("en", "/guide/"), ("fr", "/guide/fr/")):
        assert f'href="{path}"' in (await operator.other(language=language).get("/listen")).html
    (site / "index.html").rename(site / "later.html")
    assert "/guide" not in (await operator.get("/organizations")).html
    page = await operator.other().get("/guide/")
    assert (page.status, page.trouble) == (503, "guide_not_built")
    assert "make docs" in page.text
    (site / "later.html").rename(site / "index.html")
    assert (await operator.other().get("/guide/")).status == 200


@pytest.mark.usefixtures("site")
def test_no_path_leads_out_of_the_guide() -> None:
    with served_in_thread(create_app(console_settings())) as url:
        for escape in (b"../secret", b"..%2fsecret", b"%2e%2e/secret", b"/etc/passwd", b"%00"):
            answer = send_raw(url, b"/guide/" + escape)
            assert answer.status == 404, escape
            assert b"not served" not in answer.body
