"""A stand-in for whoever takes events: counts each once, by its id and its bytes, and misbehaves on command."""

import json
from typing import Final

from .issuer import compact
from .issuing_service import IssuingService, Request, problem
from .stand_ins import http

HMAC_SECRET: Final = "xhm_" + "h" * 43


class EventService(IssuingService):
    """Genuine but for `faults`, which befall one delivery after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, bytes] = {}

    def answer(self, request: Request) -> bytes:
        event_id = json.loads(request.body)["event_id"]
        if event_id not in self.stored:
            self.stored[event_id] = request.body
            return http(201, compact({"event_id": event_id, "status": "recorded"}))
        if self.stored[event_id] != request.body:
            return problem(409, "event_conflict")
        return http(200, compact({"event_id": event_id, "status": "duplicate"}))

    @property
    def bodies(self) -> list[bytes]:
        return [request.body for request in self.state.requests]
