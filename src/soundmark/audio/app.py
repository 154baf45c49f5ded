"""The private audio component: `POST /render`, for holders of the credential."""

import time
from functools import partial
from typing import Final

import structlog
from prometheus_client import Counter, Histogram
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.asgi import AsgiApp
from soundmark.kit.http.requests.bearer_auth import Guard, describe_caller, holds_credential
from soundmark.kit.http.requests.bodies import read_body
from soundmark.kit.http.requests.client_address import AddressDigest, AddressReader
from soundmark.kit.http.requests.edge import HttpEdge, install_problem_handlers
from soundmark.kit.http.requests.health import health_routes
from soundmark.kit.http.requests.private_endpoint import JSON_TYPE
from soundmark.kit.http.requests.refusals import ClientAddresses
from soundmark.kit.http.requests.strict_json import MalformedJson, parse_json
from soundmark.kit.http.responses.problem_documents import body_errors
from soundmark.kit.http.responses.problems import InternalError, MalformedBody, UnsupportedMediaType, ValidationFailed
from soundmark.settings import AudioSettings
from soundmark.wire.private.audio import RENDER, RenderRequest

BODY_MAX_BYTES: Final = 1024  # A request has 53 bytes.

_NO_BASE_URL: Final = ""  # Only Core reads these problems, by their code, so their type is a relative reference.

_RENDERS: Final = Counter("soundmark_audio_renders", "Requested renderings, by outcome.", ["outcome"])
_RENDER_SECONDS: Final = Histogram(
    "soundmark_audio_render_seconds",
    "Duration of a rendering.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25),
)
_log: Final = structlog.get_logger()


def create_app(settings: AudioSettings) -> AsgiApp:
    """Return the component as an ASGI app. It has no state."""
    app = Starlette(routes=[*health_routes(), Route(RENDER.path, render, methods=[RENDER.method])])
    app.router.redirect_slashes = False
    install_problem_handlers(app, _NO_BASE_URL)
    entropy = SystemEntropy()
    clients = ClientAddresses(AddressReader(()), AddressDigest(entropy), SystemClock())
    guard = Guard(app, settings.audio_credential)
    is_core = partial(holds_credential, credentials=settings.audio_credential)
    return HttpEdge(guard, _NO_BASE_URL, entropy, clients.describe_refused, describe_caller, is_core)


async def render(request: Request) -> Response:
    """Render the frame in the body as a WAV file, in the event loop: it takes a millisecond."""
    body = await _read(request)
    started_s = time.perf_counter()
    try:
        # The first rendering loads NumPy, 12 MiB: an Audio that renders nothing, as in most `up`s, stays small.
        from soundmark.audio.synthesis import render_wav  # noqa: PLC0415 - see above

        wav = render_wav(body.frame, body.protocol)
    except Exception as error:
        _RENDERS.labels("failed").inc()
        _log.exception("render_failed")
        raise InternalError from error
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
