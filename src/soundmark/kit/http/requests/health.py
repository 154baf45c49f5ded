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

_OK: Final = "ok"
_DOWN: Final = "down"


class HealthCheck(NamedTuple):
    """One thing that a process needs.

    `find_result` returns True if it is fine, False if it is down, or else the reason in one lower-case word of the
    form `read_only`, which everyone may read: no version, no address, no name of a tenant. If it raises or takes longer
    than `CHECK_TIMEOUT_S`, the thing counts as down. It runs at most once a second.

    `counts` says when a failure makes the process not ready:

    - "process": always;
    - "shared": always, except for `/readyz?scope=process`, because it fails for every process of the component at once;
    - "shown": never.
    """

    name: str
    find_result: Callable[[], Awaitable[bool | str]]
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
        results = await asyncio.gather(*(_find_result(check) for check in self._checks))
        self._asked_until_s = asyncio.get_running_loop().time() + SHARED_S
        failed = [check for check, result in zip(self._checks, results, strict=True) if result != _OK]
        unavailable = sorted(check.name for check in failed if check.counts != "shown")
        degraded = sorted(check.name for check in failed if check.counts == "shown")
        return {
            "status": "not_ready" if unavailable else "degraded" if degraded else "ready",
            "checks": {check.name: result for check, result in zip(self._checks, results, strict=True)},
            "unavailable": unavailable,
            "degraded": degraded,
        }


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
            body = {
                "status": "not_ready",
                "checks": {"process": "draining"},
                "unavailable": ["process"],
                "degraded": [],
            }
        else:
            body = await (of_process if request.query_params.get("scope") == "process" else whole).find()
        is_ready = body["status"] != "not_ready"
        return JSONResponse(body, status_code=HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE)

    return [Route("/healthz", healthz, methods=["GET"]), Route("/readyz", readyz, methods=["GET"])]


async def _find_result(check: HealthCheck) -> str:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            result = await check.find_result()
    except Exception:  # noqa: BLE001 - after any error in a check, what it checks counts as down
        return _DOWN
    if isinstance(result, str):
        return result
    return _OK if result else _DOWN
