"""Static files, and how long browsers keep them."""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.staticfiles import StaticFiles

from soundmark.kit.http.asgi import AsgiApp, Message, Receive, Scope, Send
from soundmark.kit.http.responses.document import Document

STATIC_FOLDER: Final = Path(str(resources.files(__package__).joinpath("static")))
# The modules of soundmark-receiver, in the installed package or in the repository of an editable checkout.
_IN_PACKAGE: Final = Path(__file__).parent / "static" / "receiver"
_IN_REPOSITORY: Final = Path(__file__).parents[3] / "sdk" / "js" / "src"
_VERSION_CHARS: Final = 12
_YEAR_S: Final = 365 * 24 * 3600
# They are public, so that compressing them reveals nothing. A page is not compressed: it holds the token of its forms
# beside what a link of another site may put into it.
_TEXTS: Final[Mapping[str, str]] = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


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
    found = [] if is_site else folder.rglob("*")
    texts = {f"/{file.relative_to(folder).as_posix()}": file for file in found if file.suffix in _TEXTS}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        is_lasting = f"{scope['path']}?{scope['query_string'].decode('latin-1')}" in _LASTING
        cache_control = f"public, max-age={_YEAR_S}, immutable" if is_lasting else "no-cache"

        async def send_with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["cache-control"] = cache_control
            await send(message)

        file = texts.get(scope["path"].removeprefix(scope["root_path"]))
        if file is None or scope["method"] not in {"GET", "HEAD"}:
            await files(scope, receive, send_with_header)
        else:
            text = _read_text(file, file.stat().st_mtime_ns)
            await text.answer(Request(scope))(scope, receive, send_with_header)

    return app


@cache
def _read_text(file: Path, _changed_ns: int) -> Document:
    return Document(file.read_text(encoding="utf-8"), _TEXTS[file.suffix], {})


def receiver_folder() -> Path:
    """Return the folder of the modules: in the installed package, or in the repository of an editable checkout.

    Raises: FileNotFoundError when neither exists, so that a broken installation does not start.
    """
    for folder in (_IN_PACKAGE, _IN_REPOSITORY):
        if (folder / "index.js").is_file():
            return folder
    raise FileNotFoundError(f"soundmark-receiver is missing: neither {_IN_PACKAGE} nor {_IN_REPOSITORY} holds it.")
