"""Each change of a signing key enters the transparency log."""

import json
from typing import Any

from support.database.rival import Rival

from .conftest import Keys


async def logged(rival: Rival) -> list[tuple[str, str]]:
    """Return what happened to which key, in the order of the queue."""
    rows = await rival.rows("SELECT content FROM log_queue ORDER BY id")
    entries: list[dict[str, Any]] = [json.loads(bytes(entry)) for (entry,) in rows]
    return [(entry["kind"], entry["kid"]) for entry in entries]


async def test_each_change_of_a_key_is_logged_once(keys: Keys, rival: Rival) -> None:
    await keys.ensure()
    first = await keys.by_status("active")
    assert await logged(rival) == [("key.published", first), ("key.activated", first)]
    for _ in range(2):
        second = await keys.stage()
    for _ in range(2):
        await keys.activate(second)
    keys.clock.advance(minutes=6)
    for _ in range(2):
        await keys.retire(first)
    assert (await logged(rival))[2:] == [
        ("key.published", second),
        ("key.superseded", first),
        ("key.activated", second),
        ("key.retired", first),
    ]
