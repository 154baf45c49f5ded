"""The two tables that say whether an organisation is suspended: no statement changes one of them alone."""

import psycopg
import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.suspension import suspend
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret

_LISTED = "INSERT INTO suspended_organizations (organization_id) VALUES (%s)"
_SUSPENDED = "UPDATE organizations SET suspended_at = now(), suspension_reason = 'Spam.' WHERE id = %s"
_UNLISTED = "DELETE FROM suspended_organizations WHERE organization_id = %s"
_RESTORED = "UPDATE organizations SET suspended_at = NULL, suspension_reason = NULL WHERE id = %s"
_MOVED = "UPDATE suspended_organizations SET organization_id = %s"
_MADE = (
    "INSERT INTO organizations (id, name, created_at, suspended_at, suspension_reason)"
    " VALUES (%s, 'R', now(), now(), 'Spam.')"
)


async def _refused(rival: Rival, statement: str, organization_id: str) -> None:
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="in one of the two tables alone"):
        await rival.run(statement, organization_id)


async def test_no_statement_changes_one_table_alone(api: Api, tenant: Tenant, rival: Rival) -> None:
    """A Code that resolves although its organisation is suspended, or fails although it is not, would go unnoticed."""
    other = await api.make_organization("Radio Süd")
    for statement in (_LISTED, _SUSPENDED):
        await _refused(rival, statement, tenant.organization_id)
    await _refused(rival, _MADE, "org_" + "z" * 22)
    await suspend(api, tenant.organization_id)
    for statement in (_UNLISTED, _RESTORED):
        await _refused(rival, statement, tenant.organization_id)
    await _refused(rival, _MOVED, other)
    assert await rival.rows("SELECT organization_id FROM suspended_organizations") == [(tenant.organization_id,)]


async def test_the_policies_hide_nothing_from_the_comparison(api: Api, tenant: Tenant, database_url: Secret) -> None:
    """Core's own role sees no organisation without a tenant, and may delete from the table that no policy protects."""
    await suspend(api, tenant.organization_id)
    async with await psycopg.AsyncConnection.connect(database_url.reveal(), autocommit=True) as connection:
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="in one of the two tables alone"):
            await connection.execute("DELETE FROM suspended_organizations")
