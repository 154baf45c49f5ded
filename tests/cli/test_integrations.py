"""`soundmark integrations` beside a real Audience: create, rotate, shorten the retention, replace the key, revoke."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from soundmark.kit.crypto.secret import Secret

from .conftest import Service, Tenant, answered, cells, serving_core


@pytest.fixture
def service(spare_database_url: Secret, timely_audience_url: str) -> Iterator[Service]:
    """A Core beside a real Audience."""
    with serving_core(spare_database_url, audience_url=timely_audience_url) as service:
        yield service


def test_an_integration_lives_and_ends_at_a_terminal(tenant: Tenant, tmp_path: Path) -> None:
    as_operator = tenant.run_as_operator
    assert as_operator("use", tenant.organization_id, tenant.project_id).status == 0
    file = tmp_path / "publisher.secret"
    create = ("integrations", "create", "--mode", "demo", "--retention-days", "14", "--name", "Studio")
    made = as_operator(*create, "--secret-file", str(file), "--quiet").out.strip()
    first = file.read_text()
    assert (made[:4], first[:4]) == ("int_", "xhm_")
    assert cells(as_operator("integrations", "list"))[0][:5] == [made, "Studio", "demo", "14 days", "active"]
    assert cells(as_operator("integrations", "rename", made, "Lobby"))[0][:2] == [made, "Lobby"]
    assert answered(as_operator("integrations", "rename", made, "--no-name", "--json"))["name"] is None
    assert (as_operator("integrations", "rename", made).status) == 2

    rotated = answered(as_operator("integrations", "rotate-secret", made, "--json"))
    assert rotated["hmac_secret"] != first.strip()
    kept = as_operator("integrations", "set-retention", made, "7")
    assert kept.out == f"{made} keeps events for 7 days (before: 14); 0 events were deleted\n"
    assert as_operator("integrations", "replace-core-key", made).out.startswith(f"{made} trusts sig_")
    for _ in range(2):
        assert as_operator("integrations", "revoke", made).out == f"{made} is revoked\n"
    wrong = as_operator("integrations", "rotate-secret", made)
    assert wrong.refusal.startswith("integration_revoked (409)")
