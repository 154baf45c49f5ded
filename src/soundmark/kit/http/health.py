"""`/healthz` and `/readyz`: is the process up, and is everything up that it needs."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

SHARED_S: Final = 1.0  # How long an answer is given again: probes ask every few seconds, floods far more often.
# Above the longest wait of a check of ours (a connection that must be replaced), below a probe's usual patience.
CHECK_TIMEOUT_S: Final = 4.0

Check = Callable[[], Awaitable[bool]]
Warn = Callable[[], str | None]


class Readiness:
    """What of some checks is not available, asked once for everybody who wants to know within a second.

    A check that is late or raises counts as not available.
    """

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks: Final = checks
        self._asking: asyncio.Task[list[str]] | None = None
        self._asked_until_s = 0.0

    async def find_unavailable(self) -> list[str]:
        """Return the names of the checks that do not pass, as of a moment ago at most.

        While checks are under way everybody waits for the same ones, and then has their answer for `SHARED_S`.
        """
        asking = self._asking
        if asking is None or (asking.done() and asyncio.get_running_loop().time() >= self._asked_until_s):
            # A task of its own, because whoever asks first may hang up before the others have their answer.
            asking = self._asking = asyncio.create_task(self._ask(), name="readiness")
        return await asyncio.shield(asking)

    async def _ask(self) -> list[str]:
        answers = await asyncio.gather(*(_passes(check) for check in self._checks.values()))
        self._asked_until_s = asyncio.get_running_loop().time() + SHARED_S
        return sorted(name for name, passed in zip(self._checks, answers, strict=True) if not passed)


def health_routes(checks: Mapping[str, Check], warn: Warn = lambda: None) -> list[Route]:
    """Routes that answer 200 on `/healthz`, and on `/readyz` 503 naming what of `checks` is not available.

    What `warn` says of a process that is ready all the same is the `detail` of its answer.

    Neither needs a credential, so what `/readyz` costs is bounded by time and not by how often it is asked.
    """
    readiness = Readiness(checks)

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_: Request) -> Response:
        unavailable = await readiness.find_unavailable()
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
