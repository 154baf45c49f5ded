"""`/healthz` and `/readyz`: is the process up, and is everything up that it needs."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

# Above the longest wait of a check of ours (a connection that must be replaced), below a probe's usual patience.
CHECK_TIMEOUT_S: Final = 4.0

Check = Callable[[], Awaitable[bool]]
Warn = Callable[[], str | None]


def health_routes(checks: Mapping[str, Check], warn: Warn = lambda: None) -> list[Route]:
    """Routes that answer 200 on `/healthz`, and on `/readyz` 503 naming what of `checks` is not available.

    A check that is late or raises counts as not available. What `warn` says of a process that is ready all the same is
    the `detail` of its answer.
    """

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_: Request) -> Response:
        answers = await asyncio.gather(*(_passes(check) for check in checks.values()))
        unavailable = sorted(name for name, passed in zip(checks, answers, strict=True) if not passed)
        if unavailable:
            body = {"status": "not_ready", "unavailable": unavailable}
            return JSONResponse(body, status_code=HTTPStatus.SERVICE_UNAVAILABLE)
        detail = warn()
        return JSONResponse({"status": "ready", **({} if detail is None else {"detail": detail})})

    return [Route("/healthz", healthz, methods=["GET"]), Route("/readyz", readyz, methods=["GET"])]


async def _passes(check: Check) -> bool:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return await check()
    except Exception:  # noqa: BLE001 - whatever goes wrong in a check, the answer is that the dependency is not there
        return False
