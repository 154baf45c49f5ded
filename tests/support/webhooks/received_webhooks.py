"""An ASGI app that keeps every request, as a seller's server would receive webhooks."""

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response


@dataclass(frozen=True)
class ReceivedRequest:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class ReceivedWebhooks:
    """What was received, in the order of arrival; `statuses` are answered first, one by one, and then 200."""

    requests: list[ReceivedRequest] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        body = await request.body()
        self.requests.append(
            ReceivedRequest(request.method, request.url.path, dict(request.query_params), dict(request.headers), body)
        )
        status = self.statuses.pop(0) if self.statuses else 200
        await Response(status_code=status)(scope, receive, send)
