"""The documentation site at `/guide`: what `make docs` built, in the installed package or in the repository.

Its pages hold no script and no style of their own (see docs/site/hooks.py), so they have the policy of all other pages.
"""

from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from soundmark.console.static_files import serve_files
from soundmark.kit.http.asgi import Receive, Scope, Send

PATH: Final = "/guide"
_IN_PACKAGE: Final = Path(__file__).parent / "documentation_site"
_IN_REPOSITORY: Final = Path(__file__).parents[3] / "build" / "guide"


def find_site() -> Path | None:
    """Return the folder of the site; None if it was not built."""
    for folder in (_IN_PACKAGE, _IN_REPOSITORY):
        if (folder / "index.html").is_file():
            return folder
    return None


async def serve_site(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a file of the site. It is looked for each time, because `make up` builds it while the console serves.

    Raises: HTTPException, which becomes a page that says how to build the site.
    """
    folder = find_site()
    if folder is None:
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE)
    await serve_files(folder, is_site=True)(scope, receive, send)


async def _lead_to_site(_: Request) -> Response:
    return RedirectResponse(f"{PATH}/", HTTPStatus.PERMANENT_REDIRECT)


routes: Final[tuple[BaseRoute, ...]] = (Route(PATH, _lead_to_site), Mount(PATH, serve_site))
