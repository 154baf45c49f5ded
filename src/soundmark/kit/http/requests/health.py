"""`/healthz` and `/readyz`: whether the process runs, and whether everything that it needs is available."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

SHARED_S: Final = 1.0  # How long a result is reused: probes arrive every few seconds, floods far more often.
# Above the longest wait of our own checks (a connection that must be replaced), below a probe's usual timeout.
CHECK_TIMEOUT_S: Final = 4.0

Check = Callable[[], Awaitable[bool]]


class Readiness:
    """Some checks, which run at most once a second for all callers.

    A check that is late or raises counts as not passed.
    """

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks: Final = checks
        self._asking: asyncio.Task[list[str]] | None = None
        self._asked_until_s = 0.0

    async def find_unavailable(self) -> list[str]:
        """Return the names of the checks that do not pass, as of at most `SHARED_S` ago.

        While the checks run, all callers wait for the same run.
        """
        asking = self._asking
        if asking is None or (asking.done() and asyncio.get_running_loop().time() >= self._asked_until_s):
            # A separate task, because the first caller may hang up while others still wait for the result.
            asking = self._asking = asyncio.create_task(self._ask(), name="readiness")
        return await asyncio.shield(asking)

    async def _ask(self) -> list[str]:
        answers = await asyncio.gather(*(_passes(check) for check in self._checks.values()))
        self._asked_until_s = asyncio.get_running_loop().time() + SHARED_S
        return sorted(name for name, passed in zip(self._checks, answers, strict=True) if not passed)


def health_routes(checks: Mapping[str, Check]) -> list[Route]:
    """Return the routes: `/healthz` answers 200; `/readyz` answers 200, or 503 naming the `checks` that do not pass.

    Neither needs a credential, so the cost of `/readyz` does not depend on how often it is called, and it says nothing
    but names.
    """
    readiness = Readiness(checks)

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_: Request) -> Response:
        unavailable = await readiness.find_unavailable()
        status, code = ("not_ready", HTTPStatus.SERVICE_UNAVAILABLE) if unavailable else ("ready", HTTPStatus.OK)
        return JSONResponse({"status": status, "unavailable": unavailable}, status_code=code)

    return [Route("/healthz", healthz, methods=["GET"]), Route("/readyz", readyz, methods=["GET"])]


async def _passes(check: Check) -> bool:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return await check()
    except Exception:  # noqa: BLE001 - after any error in a check, the dependency counts as unavailable
        return False
