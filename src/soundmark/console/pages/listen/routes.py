"""The public page that hears Codes. It works in the browser alone: no sound and no token reaches the console."""

from typing import Final
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.routing import page
from soundmark.console.visit import Visit


async def show(visit: Visit) -> Response:
    """Show the page, for anybody."""
    addresses = visit.console.addresses
    return visit.page(
        "listen/listen.html",
        core_url=addresses.core,
        publisher_url=addresses.publisher,
        publisher_host=None if addresses.publisher is None else urlsplit(addresses.publisher).netloc,
    )


routes: Final[list[Route]] = [page("/listen", show, public=True)]
