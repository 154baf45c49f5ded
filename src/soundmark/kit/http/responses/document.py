"""Documents that never change while the process runs: rendered, compressed and tagged once."""

import asyncio
import gzip
import hashlib
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from soundmark.kit.http.responses.problems import NotFound

_CODING: Final = re.compile(r"\s*(gzip|x-gzip|\*)\s*(?:;\s*q=([01](?:\.\d{0,3})?)\s*)?", re.ASCII | re.IGNORECASE)
_TAG_CHARS: Final = 22  # 88 bits of SHA-256 are enough to tell versions of one document apart.


class Document:
    """A text with its gzip form and its entity tag, served in the form that the request's headers ask for.

    The tag is weak, so that it names both forms (RFC 9110, section 8.8.1). It depends only on the text, so it is the
    same in every process of a release.
    """

    def __init__(self, text: str, media_type: str, headers: Mapping[str, str]) -> None:
        self._body: Final = text.encode()
        self._compressed: Final = gzip.compress(self._body, mtime=0)
        self._tag: Final = f'"{hashlib.sha256(self._body).hexdigest()[:_TAG_CHARS]}"'
        self._kept: Final = {**headers, "etag": f"W/{self._tag}", "vary": "Accept-Encoding"}
        self._media_type: Final = media_type

    def answer(self, request: Request) -> Response:
        """Return the document, compressed if the caller accepts that, or 304 if the caller already has it."""
        if self._is_held(request.headers.getlist("if-none-match")):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=self._kept)
        if _takes_gzip(request.headers.getlist("accept-encoding")):
            headers = {**self._kept, "content-encoding": "gzip"}
            return Response(self._compressed, media_type=self._media_type, headers=headers)
        return Response(self._body, media_type=self._media_type, headers=self._kept)

    def _is_held(self, conditions: list[str]) -> bool:
        """Return whether one of the tags is ours, compared weakly (RFC 9110, section 13.1.2)."""
        tags = [tag.strip() for condition in conditions for tag in condition.split(",")]
        return "*" in tags or self._tag in {tag.removeprefix("W/") for tag in tags}


class DocumentSet:
    """Documents that are rendered together when the first of them is requested, by name.

    Most processes are never asked for them, and rendering would be a third of what their start takes. It happens in a
    thread, so other requests are answered meanwhile.
    """

    def __init__(self, render: Callable[[], Mapping[str, Document]]) -> None:
        self._render: Final = render
        self._rendering: asyncio.Task[Mapping[str, Document]] | None = None

    async def get(self, name: str) -> Document:
        """Return one document.

        Raises: NotFound.
        """
        if self._rendering is None:
            self._rendering = asyncio.create_task(asyncio.to_thread(self._render))
        # A caller that hangs up does not cancel what others wait for.
        documents = await asyncio.shield(self._rendering)
        if name not in documents:
            raise NotFound
        return documents[name]


def _takes_gzip(accepted: list[str]) -> bool:
    """Return whether the caller accepts gzip (RFC 9110, section 12.5.3); without the header it does not."""
    qualities: dict[str, float] = {}
    for coding in ",".join(accepted).split(","):
        match = _CODING.fullmatch(coding)
        if match is not None:
            qualities[match[1].lower().removeprefix("x-")] = float(match[2] or 1)
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0
