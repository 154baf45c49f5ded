"""`/healthz` and `/readyz`: whether the process runs, and whether it can do its work."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Any, Final, Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from soundmark.kit.http.asgi import DRAINING

SHARED_S: Final = 1.0  # How long a result is reused: probes arrive every few seconds, floods far more often.
# Above the longest wait of our own checks (a connection that must be replaced), below a probe's usual timeout.
CHECK_TIMEOUT_S: Final = 4.0


class HealthCheck(NamedTuple):
    """One thing that a process needs.

    `is_fine` runs at most once a second. If it raises or takes longer than `CHECK_TIMEOUT_S`, the check fails. Everyone
    may read `name`.

    `counts` says when a failure makes the process not ready:

    - "process": always;
    - "shared": always, except for `/readyz?scope=process`, because it fails for every process of the component at once;
    - "shown": never.
    """

    name: str
    is_fine: Callable[[], Awaitable[bool]]
    counts: Literal["process", "shared", "shown"]


class Readiness:
    """Some checks, which run at most once a second for all callers."""

    def __init__(self, checks: Iterable[HealthCheck]) -> None:
        self._checks: Final = tuple(checks)
        self._asking: asyncio.Task[dict[str, Any]] | None = None
        self._asked_until_s = 0.0

    async def find(self) -> dict[str, Any]:
        """Return the body of `/readyz`, as of at most `SHARED_S` ago.

        While the checks run, all callers wait for the same run.
        """
        asking = self._asking
        if asking is None or (asking.done() and asyncio.get_running_loop().time() >= self._asked_until_s):
            # A separate task, because the first caller may hang up while others still wait for the result.
            asking = self._asking = asyncio.create_task(self._ask(), name="readiness")
        return await asyncio.shield(asking)

    async def _ask(self) -> dict[str, Any]:
        results = await asyncio.gather(*(_is_fine(check) for check in self._checks))
        self._asked_until_s = asyncio.get_running_loop().time() + SHARED_S
        failed = [check for check, is_fine in zip(self._checks, results, strict=True) if not is_fine]
        unavailable = sorted(check.name for check in failed if check.counts != "shown")
        degraded = sorted(check.name for check in failed if check.counts == "shown")
        return _body(unavailable, degraded)


def health_routes(*checks: HealthCheck) -> list[Route]:
    """Return the routes: `/healthz` answers 200; `/readyz` answers 200, or 503 if a check that counts fails.

    While the process drains, `/readyz` is 503. Neither needs a credential, so the cost of `/readyz` does not depend on
    how often it is called.
    """
    whole = Readiness(checks)
    of_process = Readiness(check for check in checks if check.counts == "process")

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(request: Request) -> Response:
        if request.scope.get("state", {}).get(DRAINING):
            body = _body(["draining"], [])
        else:
            # Compared as bytes: nothing else of a hostile query has to be decoded.
            is_of_process = b"scope=process" in request.scope["query_string"].split(b"&")
            body = await (of_process if is_of_process else whole).find()
        is_ready = body["status"] != "not_ready"
        return JSONResponse(body, status_code=HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE)

    return [Route("/healthz", healthz, methods=["GET"]), Route("/readyz", readyz, methods=["GET"])]


def _body(unavailable: list[str], degraded: list[str]) -> dict[str, Any]:
    status = "not_ready" if unavailable else "ready"
    return {"status": status, "unavailable": unavailable, "degraded": degraded}


async def _is_fine(check: HealthCheck) -> bool:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return await check.is_fine()
    except Exception:  # noqa: BLE001 - after any error in a check, it fails
        return False
