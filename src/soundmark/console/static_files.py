"""Static files, and how long browsers keep them."""

import hashlib
from importlib import resources
from pathlib import Path
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.staticfiles import StaticFiles

from soundmark.kit.http.asgi import AsgiApp, Message, Receive, Scope, Send

STATIC_FOLDER: Final = Path(str(resources.files(__package__).joinpath("static")))
# The modules of soundmark-receiver, in the installed package or in the repository of an editable checkout.
_IN_PACKAGE: Final = Path(__file__).parent / "static" / "receiver"
_IN_REPOSITORY: Final = Path(__file__).parents[3] / "sdk" / "js" / "src"
_VERSION_CHARS: Final = 12
_YEAR_S: Final = 365 * 24 * 3600


def _make_url(file: Path) -> str:
    version = hashlib.sha256(file.read_bytes()).hexdigest()[:_VERSION_CHARS]
    return f"/static/{file.relative_to(STATIC_FOLDER).as_posix()}?v={version}"


# The files of an installation do not change while it runs.
_URLS: Final = {
    file.relative_to(STATIC_FOLDER).as_posix(): _make_url(file) for file in STATIC_FOLDER.rglob("*") if file.is_file()
}
_LASTING: Final = frozenset(_URLS.values())


def locate_static(path: str) -> str:
    """Return the URL of a static file, which changes with its content."""
    return _URLS[path]


def serve_files(folder: Path, *, is_site: bool = False) -> AsgiApp:
    """Return an app with the files of a folder. A site has an `index.html` for folders, and a `404.html`.

    Browsers keep what pages load by `locate_static`. Modules import others by plain paths, so browsers ask whether
    those have changed, every time: after an upgrade, no page runs modules of two releases.
    """
    files = StaticFiles(directory=str(folder), html=is_site)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        is_lasting = f"{scope['path']}?{scope['query_string'].decode('latin-1')}" in _LASTING
        cache_control = f"public, max-age={_YEAR_S}, immutable" if is_lasting else "no-cache"

        async def send_with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["cache-control"] = cache_control
            await send(message)

        await files(scope, receive, send_with_header)

    return app


def receiver_folder() -> Path:
    """Return the folder of the modules: in the installed package, or in the repository of an editable checkout.

    Raises: FileNotFoundError when neither exists, so that a broken installation does not start.
    """
    for folder in (_IN_PACKAGE, _IN_REPOSITORY):
        if (folder / "index.js").is_file():
            return folder
    raise FileNotFoundError(f"soundmark-receiver is missing: neither {_IN_PACKAGE} nor {_IN_REPOSITORY} holds it.")
