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


@pytest.mark.parametrize("provider", ["contract", "Card", "%00"])
async def test_another_provider_is_not_found(api: Api, rival: Rival, provider: str) -> None:
    for body in ({"enabled": True}, {}):
        answer = await api.put(f"{ADMIN}/providers/{provider}", json=body)
        assert (answer.status, answer.code) == (404, "not_found")
        assert answer.json["detail"] == "No payment provider has this name: they are card and local."
    assert await rival.rows("SELECT name, enabled FROM payment_providers ORDER BY name") == [
        ("card", False),
        ("local", False),
    ]


async def test_a_change_is_one_event_of_the_log(api: Api, capsys: Any) -> None:
    await put_provider(api, "card")
    changes = [line for line in capsys.readouterr().out.splitlines() if "payment_provider_changed" in line]
    assert len(changes) == 1
    for part in ("provider=card", "enabled=True", "subject_id=operator"):
        assert part in changes[0]
