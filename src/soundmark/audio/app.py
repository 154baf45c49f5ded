"""The private audio component: `POST /render`, for holders of the credential."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Final

import structlog
from prometheus_client import Counter, Gauge, Histogram
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from soundmark.audio.render import QueueFull, Renderer, RenderQueue
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.asgi import AsgiApp
from soundmark.kit.http.requests.bearer_auth import Guard, describe_caller
from soundmark.kit.http.requests.bodies import read_body
from soundmark.kit.http.requests.client_address import AddressDigest, AddressReader
from soundmark.kit.http.requests.edge import GONE, HttpEdge, install_problem_handlers
from soundmark.kit.http.requests.health import health_routes
from soundmark.kit.http.requests.private_endpoint import JSON_TYPE
from soundmark.kit.http.requests.refusals import ClientAddresses
from soundmark.kit.http.requests.strict_json import MalformedJson, parse_json
from soundmark.kit.http.responses.problem_documents import body_errors
from soundmark.kit.http.responses.problems import (
    InternalError,
    Kind,
    MalformedBody,
    Problem,
    UnsupportedMediaType,
    ValidationFailed,
)
from soundmark.settings import AudioSettings
from soundmark.wire.private.audio import RENDER, RenderRequest


class AudioBusy(Problem):
    """The queue is full; nothing was rendered."""

    kind, code, title = Kind.UNAVAILABLE, "audio_busy", "Too many renderings are waiting; try again in a moment."


BODY_MAX_BYTES: Final = 1024  # A request has 53 bytes.

_NO_BASE_URL: Final = ""  # Only Core reads these problems, by their code, so their type is a relative reference.

_RENDERS: Final = Counter("soundmark_audio_renders", "Requested renderings, by outcome.", ["outcome"])
_WAITING: Final = Gauge(
    "soundmark_audio_waiting", "Callers whose rendering is queued or in progress.", multiprocess_mode="livesum"
)
_RENDER_SECONDS: Final = Histogram(
    "soundmark_audio_render_seconds",
    "From the accepted request to the finished WAV file, including the wait.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
)
_log: Final = structlog.get_logger()


def create_app(settings: AudioSettings) -> AsgiApp:
    """Return the component as an ASGI app; its lifespan holds the process's one ggwave instance."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.queue = RenderQueue(Renderer())
        try:
            yield
        finally:
            await app.state.queue.aclose()

    app = Starlette(lifespan=lifespan, routes=[*health_routes(), Route(RENDER.path, render, methods=[RENDER.method])])
    app.router.redirect_slashes = False
    install_problem_handlers(app, _NO_BASE_URL)
    entropy = SystemEntropy()
    clients = ClientAddresses(AddressReader(()), AddressDigest(entropy), SystemClock())
    guard = Guard(app, settings.audio_credential)
    return HttpEdge(guard, _NO_BASE_URL, entropy, clients.describe_refused, describe_caller)


async def render(request: Request) -> Response:
    """Render the frame in the body as a WAV file; drop it when the caller hangs up or its deadline passes."""
    body = await _read(request)
    with _WAITING.track_inprogress():
        return await _render(request, body)


async def _render(request: Request, body: RenderRequest) -> Response:
    queue: RenderQueue = request.app.state.queue
    started_s = time.perf_counter()
    rendering = asyncio.ensure_future(queue.render(body.frame, body.protocol))
    leaving = asyncio.ensure_future(_until_gone(request))
    try:
        await asyncio.wait({rendering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not rendering.done():
            _RENDERS.labels("abandoned").inc()
            return Response(status_code=GONE)  # Nobody reads it.
        wav = await rendering
    except asyncio.CancelledError:
        _RENDERS.labels("abandoned").inc()
        raise
    except QueueFull:
        _RENDERS.labels("busy").inc()
        raise AudioBusy(headers={"retry-after": "1"}) from None
    except Exception as error:
        _RENDERS.labels("failed").inc()
        _log.exception("render_failed")
        raise InternalError from error
    finally:
        rendering.cancel()
        leaving.cancel()
    _RENDERS.labels("rendered").inc()
    _RENDER_SECONDS.observe(time.perf_counter() - started_s)
    return Response(wav, media_type=RENDER.media_type)


async def _read(request: Request) -> RenderRequest:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != JSON_TYPE:
        raise UnsupportedMediaType
    data = await read_body(request, BODY_MAX_BYTES)
    try:
        return RenderRequest.model_validate(parse_json(data))
    except MalformedJson as error:
        raise MalformedBody(f"The body is not well-formed JSON: {error}.") from None
    except ValidationError as error:
        raise ValidationFailed(errors=body_errors(error)) from None


async def _until_gone(request: Request) -> None:
    """Return when the caller has hung up; the body was read, so nothing else can arrive."""
    await request.receive()
