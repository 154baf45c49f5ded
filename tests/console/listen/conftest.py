"""What the tests of the listening page share: the console on a socket, in front of a Core that answers as told."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from support.browser.listening_page import open_listening_page
from support.codes.sounds import render_token
from support.processes.running_apps import served_in_thread

from soundmark.console.app import create_app
from soundmark.settings import ConsoleSettings


@dataclass
class StandInCore:
    """A Core that answers whatever a test puts into it: resolutions by token, keys, or statuses."""

    url: str = ""
    keys: Any = field(default_factory=lambda: {"keys": []})
    answers: dict[str, Any] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    resolved: list[str] = field(default_factory=list)

    def app(self) -> Starlette:
        async def resolve(request: Request) -> Response:
            token = request.path_params["token"]
            self.resolved.append(token)
            if token in self.statuses:
                return Response("PLANTED", self.statuses[token], headers={"retry-after": "60"})
            return JSONResponse(self.answers[token])

        async def list_keys(_: Request) -> Response:
            return JSONResponse(self.keys, headers={"cache-control": "public, max-age=60"})

        cors = Middleware(
            CORSMiddleware,
            allow_origins=["*"],
            allow_headers=["X-Svc-Resolution-Proof"],
            expose_headers=["Retry-After"],
        )
        return Starlette(
            routes=[
                Route("/v1/resolve/{token}", resolve),
                Route("/v1/keys", list_keys),
                Route("/v1/keys/history", list_keys),
            ],
            middleware=[cors],
        )


@pytest.fixture(scope="module")
def stand_in_server() -> Iterator[StandInCore]:
    """A stand-in of Core on a socket."""
    core = StandInCore()
    with served_in_thread(core.app()) as url:
        core.url = url
        yield core


@pytest.fixture
def stand_in(stand_in_server: StandInCore) -> StandInCore:
    """The stand-in without answers."""
    stand_in_server.keys = {"keys": []}
    for each in (stand_in_server.answers, stand_in_server.statuses, stand_in_server.resolved):
        each.clear()
    return stand_in_server


@pytest.fixture(scope="session")
def serve_console() -> Callable[..., AbstractContextManager[str]]:
    """Serve a console in front of a Core."""

    def serve(core_url: str, **settings: Any) -> AbstractContextManager[str]:
        values = {"base_url": core_url, "console_key": "c" * 42 + "A", **settings}
        return served_in_thread(create_app(ConsoleSettings.model_validate(values)))

    return serve


@pytest.fixture(scope="module")
def listen_url(
    stand_in_server: StandInCore, serve_console: Callable[..., AbstractContextManager[str]]
) -> Iterator[str]:
    """The listening page in front of the stand-in."""
    with serve_console(stand_in_server.url) as console_url:
        yield f"{console_url}/listen"


@pytest.fixture
def write_sound(tmp_path: Path) -> Callable[[str], Path]:
    """Write the sound of a token to a file."""

    def write(token: str) -> Path:
        file = tmp_path / f"{token}.wav"
        file.write_bytes(render_token(token))
        return file

    return write


@pytest.fixture
def hear(write_sound: Callable[[str], Path]) -> Any:
    """Open the page, choose a file with the sound of a token, and return what the page shows of it."""

    async def open_and_choose(page: Page, url: str, token: str) -> Locator:
        await open_listening_page(page, url)
        await page.locator("#file").set_input_files(write_sound(token))
        heard = page.locator("#heard article:not([data-outcome=resolving])")
        await expect(heard).to_have_count(1)
        return heard

    return open_and_choose
