"""The public page that hears Codes. It works in the browser alone: no sound and no token reaches the console."""

from typing import Final
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.routing import page
from soundmark.console.visit import Visit


async def show(visit: Visit) -> Response:
    """Show the page, for anybody."""
    publisher = visit.console.publisher
    return visit.page(
        "listen/listen.html",
        core_url=visit.console.addresses.core,
        publisher=publisher,
        publisher_host=None if publisher is None else urlsplit(publisher.url).netloc,
    )


routes: Final[list[Route]] = [page("/listen", show, public=True)]
