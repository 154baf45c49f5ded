"""Recording events: what is answered, and what is stored."""

import hashlib
import hmac
import json
from datetime import UTC, datetime

from audience_app import AudienceApi
from core_app import Rival
from measuring import publisher


async def test_an_event_is_recorded(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await publisher(audience)
    event = source.event()

    answer = await source.deliver(event)

    assert (answer.status, answer.json) == (201, {"event_id": event["event_id"], "status": "recorded"})
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    assert await audience_rival.rows("SELECT count(*), min(receiver) FROM events") == [(1, 0)]
