"""A fake service that accepts events: it counts each once, by its id and its bytes, and misbehaves on command."""

import json
from typing import Final

from .issuer import compact
from .issuing_service import IssuingService, Request, make_problem
from .stand_ins import make_response

HMAC_SECRET: Final = "xhm_" + "h" * 43


class EventService(IssuingService):
    """Correct except for `faults`, each of which affects one delivery."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, bytes] = {}

    def answer(self, request: Request) -> bytes:
        event_id = json.loads(request.body)["event_id"]
        if event_id not in self.stored:
            self.stored[event_id] = request.body
            return make_response(201, compact({"event_id": event_id, "status": "recorded"}))
        if self.stored[event_id] != request.body:
            return make_problem(409, "event_conflict")
        return make_response(200, compact({"event_id": event_id, "status": "duplicate"}))

    @property
    def bodies(self) -> list[bytes]:
        return [request.body for request in self.state.requests]
