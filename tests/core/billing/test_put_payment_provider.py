"""`PUT /v1/billing/admin/providers/{provider}`."""

from typing import Any

import pytest
from support.api.core_client import Api
from support.billing.catalog import ADMIN, put_provider, read_catalog
from support.database.rival import Rival

from soundmark.kit.text.timestamps import format_timestamp


@pytest.mark.parametrize("provider", ["card", "local"])
async def test_a_provider_is_enabled_and_disabled(api: Api, provider: str) -> None:
    """Its credentials need not be configured."""
    now = api.clock.freeze()
    for enabled in (True, True, False):
        answer = await put_provider(api, provider, enabled=enabled)
        expected = {"provider": provider, "enabled": enabled, "updated_at": format_timestamp(now)}
        assert (answer.status, answer.json) == (200, expected)
        assert expected in (await read_catalog(api))["providers"]


@pytest.mark.parametrize("provider", ["contract", "Card", "card%20", "stripe", "desk", "a" * 160, "%00"])
async def test_another_provider_is_not_found(api: Api, rival: Rival, provider: str) -> None:
    for body in ({"enabled": True}, {}):
        answer = await api.put(f"{ADMIN}/providers/{provider}", json=body)
        assert (answer.status, answer.code) == (404, "not_found")
    assert await rival.rows("SELECT name, enabled FROM payment_providers ORDER BY name") == [
        ("card", False),
        ("local", False),
    ]


@pytest.mark.parametrize("body", [{}, {"enabled": 1}, {"enabled": "true"}, {"enabled": None}, [], "card"], ids=repr)
async def test_the_body_is_one_boolean(api: Api, body: Any) -> None:
    answer = await api.put(f"{ADMIN}/providers/card", json=body)
    assert (answer.status, answer.code) == (422, "validation_failed")
    answer = await api.put(f"{ADMIN}/providers/card", json={"enabled": True, "more": 1})
    assert [error["pointer"] for error in answer.json["errors"]] == ["/more"]


async def test_a_change_is_one_event_of_the_log(api: Api, capsys: Any) -> None:
    await put_provider(api, "card")
    changes = [line for line in capsys.readouterr().out.splitlines() if "payment_provider_changed" in line]
    assert len(changes) == 1
    for part in ("provider=card", "enabled=True", "subject_id=operator"):
        assert part in changes[0]


async def test_of_two_concurrent_changes_the_last_one_holds(api: Api, rival: Rival) -> None:
    """The second waits for the first to commit; neither is an error."""
    async with rival.committing("UPDATE payment_providers SET enabled = false WHERE name = 'card'"):
        enabling = await rival.while_waiting(put_provider(api, "card"))
    assert (await enabling).json["enabled"] is True
    assert (await read_catalog(api))["providers"][0]["enabled"] is True
