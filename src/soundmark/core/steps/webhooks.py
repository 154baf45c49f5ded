"""Announcing to an organisation's endpoints what has no audit entry of its own."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from soundmark.core.domain.tenancy.scope import Actor
from soundmark.core.domain.webhooks.act import ACT_PREFIX, Act
from soundmark.core.domain.webhooks.event import EVENT_TYPES
from soundmark.core.store.webhooks import acts
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint


async def announce(
    tx: Tx,
    organization_id: str,
    entropy: Entropy,
    *,
    type: str,  # noqa: A002 - the name of the message's member
    actor: Actor,
    now: datetime,
    data: Mapping[str, Any] | None = None,
    project_id: str | None = None,
    xr_ids: Sequence[str] | None = None,
) -> None:
    """Announce an act to the organisation's endpoints when this transaction commits; without endpoints, do nothing.

    It becomes one event with `data`, or, if `xr_ids` are given, one for each Code, whose data is its id. What is in the
    audit log, other than a selection of Codes, is announced with its entry, and not by this function. `data` contains
    ids and facts; never a secret, a token, an intent or an e-mail address.
    """
    assert type in EVENT_TYPES, "an event of this type is unknown to consumers"
    if xr_ids is not None and not xr_ids:
        return
    act = Act(
        organization_id=organization_id,
        id=mint(entropy, ACT_PREFIX),
        project_id=project_id,
        type=type,
        actor_type=actor.type,
        actor_id=actor.id,
        data=canonicalize(data or {}).decode(),
        xr_ids=None if xr_ids is None else tuple(xr_ids),
        created_at=now,
    )
    await acts.insert(tx, act)
