"""What the tests of Audience's control share."""

from typing import Any

import pytest
from support.database.rival import Rival


@pytest.fixture
def outcomes(rival: Rival) -> Any:
    """The audit log's entries about Audience, oldest first: each action with its outcome."""

    async def read() -> list[tuple[str, str]]:
        rows = await rival.rows(
            "SELECT action, outcome FROM audit_entries WHERE action LIKE 'audience.%%' ORDER BY created_at, id"
        )
        return [(action.removeprefix("audience.integration_"), outcome) for action, outcome in rows]

    return read
