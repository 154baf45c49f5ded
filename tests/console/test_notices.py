"""Messages for the next page, which a cookie carries."""

from typing import Any

import pytest
from starlette.responses import Response
from support.console.client import ConsoleClient

NAME = "soundmark-8083-notice"


def keep(browser: ConsoleClient, value: Any) -> None:
    """Put a message into the browser."""
    response = Response()
    browser.console.jar.write(response, "notice", value)
    cookie = response.headers["set-cookie"].partition(";")[0].partition("=")[2]
    browser.cookies.set(NAME, cookie, domain="127.0.0.1", path="/")


async def test_a_message_is_shown_once(operator: ConsoleClient) -> None:
    page = await operator.follow(await operator.submit("/organizations", {"name": "Radio <One>"}))

    assert page.find(".//p[@class='notice']/bdi").text == "Radio <One>"
    assert NAME not in operator.cookies
    assert page.find_all(".//p[@class='notice']/bdi/*") == [], "it is text"


@pytest.mark.parametrize(
    "value",
    [
        {"key": "moon.landed", "values": {}},
        {"key": "organizations.created", "values": {}},
        {"key": "organizations.created", "values": ["Radio"]},
        "organizations.created",
    ],
)
async def test_a_message_of_another_release_is_ignored_and_removed(operator: ConsoleClient, value: Any) -> None:
    """It would spoil every page for a minute: while processes are replaced, both releases answer."""
    keep(operator, value)

    page = await operator.get("/organizations")

    assert page.status == 200
    assert page.find_all(".//p[@class='notice']") == []
    assert NAME not in operator.cookies
