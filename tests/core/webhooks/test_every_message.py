"""What every audited operation says to endpoints: ids and facts, and nothing that is secret or personal."""

import json
import re
from typing import Any, Final

from support.api.calls import CALLS, ROWS
from support.api.world import OPERATIONS, World, send
from support.database.rival import Rival

from soundmark.core.context import Context
from soundmark.core.domain.webhooks.event import EVENT_TYPES, WebhookEvent, render_body
from soundmark.core.features.webhooks.fan_out.service import fan_out

# `create_organization` makes an organisation without endpoints; what `accept_invitation` joins is another one.
AUDITED: Final = {name: row.audited for name, row in ROWS.items() if row.audited is not None and row.roles is not None}
BULK: Final = {"code.batch_issued": "code.issued", "code.batch_revoked": "code.revoked"}
SECRET: Final = re.compile(
    r"(xak|xin|xop|xhm|whsec|brd)_[A-Za-z0-9_-]{8}|XRC1:|eyJ[A-Za-z0-9_-]*\."
    r"|https?://|[^\s\"]@[^\s\"]|\d+\.\d+\.\d+\.\d+"
)


async def list_messages(rival: Rival) -> list[dict[str, Any]]:
    rows = await rival.rows(
        "SELECT organization_id, id, project_id, type, actor_type, actor_id, data, created_at FROM webhook_events"
    )
    return [json.loads(render_body(WebhookEvent(*row))) for row in rows]


async def test_an_audited_operation_sends_a_message_without_secrets(world: World, ctx: Context) -> None:
    await world.tenant.make_webhook_endpoint()
    for operation_id, action in AUDITED.items():
        call = await CALLS[operation_id](world)
        for table in ("webhook_acts", "webhook_deliveries", "webhook_events"):
            await world.rival.run(f"DELETE FROM {table}")
        answer = await send(world.tenant.api, OPERATIONS[operation_id], call)
        assert answer.status in {200, 201, 204}, answer.body
        await fan_out(ctx)
        messages = await list_messages(world.rival)
        if operation_id == "delete_webhook_endpoint":
            messages = [message for message in messages if message["type"] == action]
        assert {message["type"] for message in messages} == {BULK.get(action, action)}, operation_id
        for message in messages:
            require_safe(world, message)


def require_safe(world: World, message: dict[str, Any]) -> None:
    """Require that a message names its organisation, actor and subject, and nothing secret or personal."""
    assert list(message) == ["type", "timestamp", "data"]
    data = message["data"]
    assert list(data)[:3] == ["organization_id", "project_id", "actor"]
    assert (data["organization_id"], data["actor"]) == (world.tenant.organization_id, {"type": "user", "id": "owner"})
    area = message["type"].partition(".")[0]
    assert {"code": "xr_id", "campaign": "campaign_id"}.get(area, "actor") in data
    assert SECRET.search(json.dumps(message, ensure_ascii=False)) is None


def test_bulk_acts_have_no_type_of_their_own() -> None:
    assert EVENT_TYPES.isdisjoint(BULK)
    assert {*BULK.values(), "code.expired", "quota.threshold_reached", "webhook.test"} <= EVENT_TYPES
