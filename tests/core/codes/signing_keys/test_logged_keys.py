"""Each change of a signing key enters the transparency log."""

import json
from typing import Any

from support.database.rival import Rival

from soundmark.core.features.log.integration.opening import renew_log
from soundmark.kit.text import base64url

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


async def test_a_log_of_an_installation_that_was_there_before_has_the_whole_history_of_its_keys(
    keys: Keys, rival: Rival
) -> None:
    await keys.make_one_of_each()
    await rival.run("DELETE FROM log_queue")
    of = {status: await keys.by_status(status) for status in ("next", "active", "retiring", "retired")}
    await renew_log(keys.ctx, "renewed.example/v1/log")
    leaves = [json.loads(bytes(entry)) for (entry,) in await rival.rows("SELECT entry FROM log_leaves")]
    assert sorted((leaf["kind"], leaf["kid"]) for leaf in leaves) == sorted(
        [
            *(("key.published", key_id) for key_id in of.values()),
            *(("key.activated", of[status]) for status in ("active", "retiring", "retired")),
            *(("key.superseded", of[status]) for status in ("retiring", "retired")),
            ("key.retired", of["retired"]),
        ]
    )
    public = dict(await rival.rows("SELECT key_id, public_key FROM signing_keys"))
    assert all(leaf["x"] == base64url.encode(bytes(public[leaf["kid"]])) for leaf in leaves)
