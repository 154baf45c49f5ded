"""Static files: nobody reads another file, and no browser runs modules of two releases."""

import itertools

import pytest
from console.conftest import console_settings
from support.api.raw_requests import send_raw
from support.console.client import ConsoleClient
from support.processes.running_apps import served_in_thread

from soundmark.console.app import create_app


@pytest.mark.parametrize("path", ["js/console.js", "js/local_times.js", "css/base.css", "receiver/index.js"])
async def test_a_browser_asks_whether_a_file_has_changed(operator: ConsoleClient, path: str) -> None:
    """Modules import each other by plain paths, which an upgrade does not change."""
    first = await operator.get(f"/static/{path}")
    again = await operator.get(f"/static/{path}", headers={"if-none-match": first.headers["etag"]})

    assert (first.status, again.status) == (200, 304)
    assert (first.headers["cache-control"], again.headers["cache-control"]) == ("no-cache", "no-cache")


async def test_a_browser_keeps_a_file_whose_address_names_its_content(operator: ConsoleClient) -> None:
    page = await operator.get("/organizations")
    linked = [str(each.get("href")) for each in page.find_all(".//head/link")]
    linked += [str(each.get("src")) for each in page.find_all(".//head/script")]

    assert len(linked) >= 3
    for url in linked:
        assert (await operator.get(url)).headers["cache-control"] == "public, max-age=31536000, immutable", url
        other = url[:-1] + ("0" if url[-1] != "0" else "1")
        assert (await operator.get(other)).headers["cache-control"] == "no-cache", "it names another content"
        assert (await operator.get(f"{url}&w=1")).headers["cache-control"] == "no-cache"


ESCAPES = [
    *(b"../app.py", b"..%2fapp.py", b"%2e%2e/app.py", b"%2E%2E%2Fapp.py", b"css/../../app.py"),
    *(b"%2e%2e/" * 20 + b"etc/passwd", b"..%5capp.py", b"%252e%252e%252fapp.py", b"/etc/passwd", b"%2fetc%2fpasswd"),
    *(b"css/base.css%00.txt", b"%00", b"a" * 300, b"", b"."),
]


def test_no_path_leads_out_of_the_folder() -> None:
    with served_in_thread(create_app(console_settings())) as url:
        for folder, escape in itertools.product((b"/static/", b"/static/receiver/", b"/static/js/"), ESCAPES):
            answer = send_raw(url, folder + escape)
            assert answer.status == 404, folder + escape
            assert b'data-code="page_not_found"' in answer.body
