"""Core's suspensions: of all that were ever sent, the latest revision applies."""

from typing import Any

import pytest
from support.api.core_client import Answer
from support.audience.client import ORGANIZATION, AudienceApi
from support.database.rival import Rival


async def put(audience: AudienceApi, *, is_suspended: Any, revision: Any, organization: str = ORGANIZATION) -> Answer:
    body = {"is_suspended": is_suspended, "revision": revision}
    return await audience.call("PUT", f"/v1/suspensions/{organization}", json=body)


async def test_late_and_repeated_ones_change_nothing(audience: AudienceApi, audience_rival: Rival) -> None:
    for sent, revision, kept in ((True, 2, True), (False, 1, True), (False, 2, True), (False, 3, False)):
        answer = await put(audience, is_suspended=sent, revision=revision)
        expected = {"organization_id": ORGANIZATION, "is_suspended": kept, "revision": max(2, revision)}
        assert (answer.status, answer.json) == (200, expected)
    await put(audience, is_suspended=True, revision=1, organization="org_another")
    rows = await audience_rival.rows('SELECT is_suspended FROM suspensions ORDER BY organization_id COLLATE "C"')
    assert sorted(rows) == [(False,), (True,)]


@pytest.mark.parametrize(("is_suspended", "revision"), [(None, 1), ("yes", 1), (True, -1), (True, None), (1, 1)])
async def test_a_malformed_one_is_refused(audience: AudienceApi, is_suspended: Any, revision: Any) -> None:
    assert (await put(audience, is_suspended=is_suspended, revision=revision)).status == 422
