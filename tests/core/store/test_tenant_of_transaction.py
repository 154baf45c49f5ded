"""Transactions begun for a tenant: what `Database` sets, and that it ends with the transaction."""

import contextlib

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.store.tenancy import members
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.link import Call
from soundmark.kit.postgres.shared_connection import SharedConnection
from soundmark.kit.postgres.transaction import Tx


@pytest.fixture
async def tenants(api: Api) -> tuple[Tenant, Tenant]:
    """Two organisations."""
    return await make_tenant(api), await make_tenant(api)


async def test_the_setting_ends_with_the_transaction(database_url: Secret, tenants: tuple[Tenant, Tenant]) -> None:
    """The next user of the pooled connection sees nothing of the previous tenant, whether committed or not."""
    one, other = (tenant.organization_id for tenant in tenants)
    db = Database(database_url, pool_size=2, application_name="tests")
    await db.open()

    async def backend_and_projects(tx: Tx) -> tuple[int, set[str]]:
        pid: int = await tx.value("SELECT pg_backend_pid()")
        found = await tx.value("SELECT coalesce(array_agg(organization_id), '{}') FROM projects")
        return pid, set(found)

    pids = set()
    try:
        for _ in range(3):
            async with db.transaction(tenant=one, subject="operator") as tx:
                pid, projects = await backend_and_projects(tx)
                pids.add(pid)
                assert projects == {one}
            with contextlib.suppress(ZeroDivisionError):
                async with db.transaction(tenant=other) as tx:
                    assert (await backend_and_projects(tx))[1] == {other}
                    raise ZeroDivisionError
            for begin in (db.transaction, db.snapshot):
                async with begin() as tx:
                    pid, projects = await backend_and_projects(tx)
                    pids.add(pid)
                    assert projects == set()
                    assert await tx.value("SELECT count(*) FROM members") == 0
        assert len(pids) <= 2, "connections were reused"
    finally:
        await db.close()


@pytest.mark.parametrize("begins", ["transaction", "snapshot"])
@pytest.mark.parametrize("name", ["x'; DROP TABLE codes; --", "*", "org_\\'", "a\nb"])
async def test_a_tenant_is_a_value_and_never_a_statement(
    database_url: Secret, tenants: tuple[Tenant, Tenant], name: str, begins: str
) -> None:
    """Whatever text a caller passes as an organisation's id."""
    assert tenants, "there is something to see"
    db = Database(database_url, pool_size=2, application_name="tests")
    await db.open()
    try:
        subject = {"subject": name} if begins == "transaction" else {}
        async with getattr(db, begins)(tenant=name, **subject) as tx:
            assert await tx.value("SELECT current_tenant()") == name
            assert await tx.value("SELECT count(*) FROM projects") == 0
    finally:
        await db.close()


async def test_roles_requested_together_are_not_mixed_up(
    database_url: Secret, tenants: tuple[Tenant, Tenant], rival: Rival
) -> None:
    one, two = tenants
    await one.make_member(rival, "anna", "admin")
    await two.make_member(rival, "anna", "billing")
    requests = {
        (two.organization_id, "anna"): "billing",
        (one.organization_id, "nobody"): None,
        (one.organization_id, "anna"): "admin",
        (one.organization_id, one.organization_id): None,
        ("org_" + "0" * 32, "anna"): None,
        (two.organization_id, "operator"): "owner",
    }
    db = Database(database_url, pool_size=1, application_name="tests")
    reads = SharedConnection(db, timeout_s=10)
    try:
        assert await members.find_roles(reads, list(requests)) == list(requests.values())
        assert await members.find_roles(reads, [*requests, *reversed(requests)]) == [
            *requests.values(),
            *reversed(requests.values()),
        ]
        # The settings of a round trip end with it; PostgreSQL leaves a name of ours empty.
        assert await reads.run(Call("SELECT current_tenant()"), is_repeatable=True) == [[("",)]]
    finally:
        await reads.aclose()
