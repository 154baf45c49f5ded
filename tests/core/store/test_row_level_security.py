"""What PostgreSQL shows to the application's role: only the rows of the tenant that the transaction was begun for."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import psycopg
import pytest
from psycopg import sql
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import EVERY_TENANT

# Tables that carry an organisation's id and are read before it is known which organisation it is about, and why. They
# hold ids and digests, and nothing that a tenant said.
WITHOUT_TENANT: Final = {
    "abuse_reports": "reports are the platform's; what people wrote in them is sealed",
    "broadcasts": "a receiver knows a token, and no organisation",
    "suspended_organizations": "a resolution asks whether the organisation of a token is suspended",
    "api_key_digests": "a key comes without its organisation; what is looked up is the digest of its secret",
    "invitation_digests": "an invitation's secret comes without its organisation; what is looked up is its digest",
    "integration_cells": "an event names an integration, and no organisation",
    "decode_certificate_owners": "everybody who knows the id of a certificate may read it",
    "audit_unsealed": "a sealer asks which organisations have entries to seal",
    "audit_unlogged": "a job asks whose chain has grown since its head was logged",
    "desk_conversations": "a delivery of the support desk names no organisation",
    "billing_references": "a provider's notification names no organisation; what is looked up is a digest",
    "payment_receipts": "an event is recorded before it is understood which organisation it is about",
}
# A person may see these before choosing an organisation: their own memberships.
OF_SUBJECT: Final = {"members"}
# Deleted by age, whoever's they are: the query about all tenants may use every command on them.
FORGOTTEN: Final = {"issuance_receipts"}
TENANT_COLUMN: Final = """
    SELECT c.relname, CASE c.relname WHEN 'organizations' THEN 'id' ELSE 'organization_id' END,
           c.relrowsecurity, c.relforcerowsecurity
      FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace
       AND c.relkind IN ('r', 'p')
       AND (c.relname = 'organizations' OR EXISTS (
               SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'organization_id' AND a.attnum > 0))
     ORDER BY c.relname
"""


@pytest.fixture
async def connection(database_url: Secret) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A plain connection with Core's role, without any of Core's code."""
    async with await psycopg.AsyncConnection.connect(database_url.reveal(), autocommit=True) as opened:
        yield opened


@pytest.fixture
async def tenants(api: Api, rival: Rival) -> tuple[Tenant, Tenant]:
    """Two organisations, each with a row in every table."""
    made = []
    for _ in range(2):
        tenant = await make_tenant(api)
        campaign = await tenant.make_campaign()
        body = tenant.code_body(campaign_id=campaign["id"])
        assert (await api.post("/v1/codes", json=body, headers={"Idempotency-Key": "k" * 16})).status == 201
        await tenant.make_key()
        await tenant.make_invitation()
        await tenant.make_entitlement(rival)
        made.append((tenant, (await tenant.make_webhook_endpoint())["id"]))
    async with asyncio.timeout(60):  # What is sealed later would change under the tests.
        while await rival.rows("SELECT FROM audit_unsealed"):
            pass
    for tenant, endpoint_id in made:  # As if the next one had just been written.
        await rival.run(
            "INSERT INTO audit_unsealed SELECT organization_id, id, 'final', now() FROM audit_entries"
            " WHERE organization_id = %s LIMIT 1",
            tenant.organization_id,
        )
        await rival.run(
            "INSERT INTO closures (organization_id, subject_id, project_id, certificate_id, operation_id, phase,"
            " requested_at, worked_at) VALUES (%s, %s, %s, 'dct_', 'aud_', 'requested', now(), now())",
            tenant.organization_id,
            tenant.project_id,
            tenant.project_id,
        )
        await rival.run(
            "INSERT INTO integration_names VALUES (%s, 'int_1', %s, 'Studio')",
            tenant.organization_id,
            tenant.project_id,
        )
        await rival.run(
            "INSERT INTO decode_certificates VALUES (%s, 'dcc_1', %s, 'xr_1', now(), '')",
            tenant.organization_id,
            tenant.project_id,
        )
        await rival.run(
            "INSERT INTO offline_packs VALUES (%s, 'opk_1', %s, NULL, now(), now() + interval '1 hour')",
            tenant.organization_id,
            tenant.project_id,
        )
        await rival.run("INSERT INTO audit_logged_heads VALUES (%s, 1, '', '', now())", tenant.organization_id)
        await insert_billing_rows(rival, tenant)
        await insert_webhook_rows(rival, tenant, endpoint_id)
    return made[0][0], made[1][0]


async def insert_billing_rows(rival: Rival, tenant: Tenant) -> None:
    """Insert a row into every tenant table of billing."""
    organization_id = tenant.organization_id
    await rival.run(
        "INSERT INTO offers (id, plan_id, provider, active, price_reference, price_status, updated_at)"
        " VALUES ('offer_1', 'plan_codes_starter', 'card', true, 'price_1', 'unknown', now()) ON CONFLICT DO NOTHING"
    )
    await rival.run(
        "INSERT INTO checkouts (organization_id, id, offer_id, plan_id, product, provider, status, price_reference,"
        " created_at, expires_at) VALUES (%s, 'bco_1', 'offer_1', 'plan_codes_starter', 'codes', 'card', 'pending',"
        " 'price_1', now(), now() + interval '1 day')",
        organization_id,
    )
    await rival.run(
        "INSERT INTO subscriptions (organization_id, id, plan_id, product, provider, status, cancel_at_period_end,"
        " provider_reference, created_at, updated_at)"
        " VALUES (%s, 'bsu_1', 'plan_codes_starter', 'codes', 'card', 'active', false, 'sub_1', now(), now())",
        organization_id,
    )
    await rival.run("INSERT INTO card_customers VALUES (%s, 'cus_1', now())", organization_id)
    await rival.run("INSERT INTO accounting_customers VALUES (%s, 1, now())", organization_id)
    await rival.run(
        "INSERT INTO accounting_outbox (organization_id, id, subscription_id, checkout_id, payment_digest, description,"
        " amount_minor, currency, period_start, period_end, status, due_at, give_up_at, created_at, updated_at)"
        " VALUES (%s, 'acc_1', 'bsu_1', 'bco_1', '', 'Plan', 1, 'TND', now(), now(), 'pending', now(), now(), now(),"
        " now())",
        organization_id,
    )
    await rival.run(
        "INSERT INTO tickets (organization_id, id, subject_id, request_id, subject, status, sealed_message, post_after,"
        " created_at) VALUES (%s, 'tkt_1', 'operator', 'supreq_1', 'A question', 'pending', '', now(), now())",
        organization_id,
    )
    await rival.run(
        "INSERT INTO ticket_replies (organization_id, id, ticket_id, subject_id, request_id, sealed_message,"
        " post_after, created_at) VALUES (%s, 'rpl_1', 'tkt_1', 'operator', 'supreq_1', '', now(), now())",
        organization_id,
    )


async def insert_webhook_rows(rival: Rival, tenant: Tenant, endpoint_id: str) -> None:
    """Insert a row into every tenant table of outbound webhooks; the creation of the endpoint is an act."""
    organization_id = tenant.organization_id
    await rival.run(
        "INSERT INTO webhook_events (organization_id, id, type, actor_type, actor_id, data, created_at)"
        " VALUES (%s, 'evn_1', 'code.issued', 'user', 'operator', '{}', now())",
        organization_id,
    )
    await rival.run(
        "INSERT INTO webhook_deliveries (organization_id, id, endpoint_id, event_id, event_type, status, created_at)"
        " VALUES (%s, 'whd_1', %s, 'evn_1', 'code.issued', 'delivered', now())",
        organization_id,
        endpoint_id,
    )
    await rival.run("INSERT INTO announced_expiries VALUES (%s, now(), '')", organization_id)
    await rival.run("INSERT INTO quota_thresholds VALUES (%s, '2026-11', 80)", organization_id)
    await rival.run("INSERT INTO webhook_replay_counts VALUES (%s, '{}', '2026-11-20', 0)", organization_id)


async def tenant_tables(rival: Rival) -> dict[str, str]:
    """Return every tenant table and its tenant column, read from the database itself."""
    rows = await rival.rows(TENANT_COLUMN)
    return {table: column for table, column, _, _ in rows if table not in WITHOUT_TENANT}


async def seen(connection: psycopg.AsyncConnection[Any], table: str, column: str) -> set[str]:
    """Return the tenants whose rows are visible."""
    cursor = await connection.execute(f"SELECT DISTINCT {column} FROM {table}".encode())
    return {organization_id for (organization_id,) in await cursor.fetchall()}


async def choose(connection: psycopg.AsyncConnection[Any], tenant: str) -> None:
    """Choose the tenant as `Database` does at the start of a transaction."""
    await connection.execute(sql.SQL("SET LOCAL soundmark.tenant TO {}").format(tenant))


async def test_every_table_with_an_organisation_is_guarded(rival: Rival) -> None:
    """A new table without row-level security fails here, and so does one whose owner would be exempt from it."""
    tables = await rival.rows(TENANT_COLUMN)
    assert {table for table, *_ in tables} >= {"organizations", "codes", "audit_entries", *WITHOUT_TENANT}
    unguarded = {table for table, _, is_enabled, is_forced in tables if not (is_enabled and is_forced)}
    assert unguarded == set(WITHOUT_TENANT)


async def test_every_guard_compares_the_tenant(rival: Rival) -> None:
    """Each table has a policy for all commands that only compares its organisation with the transaction's."""
    policies = await rival.rows(
        "SELECT tablename, qual FROM pg_policies"
        " WHERE schemaname = 'public' AND permissive = 'PERMISSIVE' AND cmd = 'ALL' AND with_check IS NULL"
    )
    expected = {(table, f"({column} = current_tenant())") for table, column in (await tenant_tables(rival)).items()}
    assert set(policies) == expected | {(table, "(current_tenant() = '*'::text)") for table in FORGOTTEN}


async def test_every_other_policy_is_known(rival: Rival) -> None:
    """Each exception beside the tenant's policy is a decision of its own, with its own test."""
    others = await rival.rows("SELECT policyname, cmd FROM pg_policies WHERE schemaname = 'public' AND cmd <> 'ALL'")
    assert set(others) == {
        ("members_of_subject", "SELECT"),
        ("accounting_customers_of_everybody", "SELECT"),
        ("accounting_outbox_of_everybody", "SELECT"),
        ("audience_entitlements_of_everybody", "SELECT"),
        ("audit_entries_of_everybody", "SELECT"),
        ("checkouts_of_everybody", "SELECT"),
        ("closures_of_everybody", "SELECT"),
        ("codes_of_everybody", "SELECT"),
        ("invitations_of_everybody", "SELECT"),
        ("invitations_resealed", "UPDATE"),
        ("organizations_of_everybody", "SELECT"),
        ("subscriptions_of_everybody", "SELECT"),
        ("webhook_acts_of_everybody", "SELECT"),
        ("webhook_deliveries_of_everybody", "SELECT"),
        ("webhook_endpoints_of_everybody", "SELECT"),
        ("webhook_endpoints_resealed", "UPDATE"),
        ("webhook_events_of_everybody", "SELECT"),
        ("tickets_of_everybody", "SELECT"),
        ("tickets_resealed", "UPDATE"),
        ("ticket_replies_of_everybody", "SELECT"),
        ("ticket_replies_resealed", "UPDATE"),
        *((f"{table}_of_backup", "SELECT") for table in await tenant_tables(rival)),
    }


async def test_no_policy_reads_another_table(rival: Rival) -> None:
    """Each compares a column of its own row with a setting, so it works wherever the row is stored."""
    policies = await rival.rows("SELECT policyname, concat(qual, ' ', with_check) FROM pg_policies")
    assert len(policies) > 30
    assert [name for name, condition in policies if "SELECT" in condition.upper()] == []


async def test_a_backup_sees_every_row_and_changes_none(
    connection: psycopg.AsyncConnection[Any], tenants: tuple[Tenant, Tenant], rival: Rival
) -> None:
    both = {tenant.organization_id for tenant in tenants}
    for table, column in (await tenant_tables(rival)).items():
        async with connection.transaction(force_rollback=True):
            await connection.execute("SET LOCAL soundmark.backup TO 'on'")
            assert await seen(connection, table, column) == both, table
            cursor = await connection.execute(f"DELETE FROM {table}".encode())
            assert cursor.rowcount == 0, table


async def test_every_tenant_table_leads_its_key_with_the_organisation(rival: Rival) -> None:
    leading = await rival.rows(
        "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]"
        " WHERE i.indisprimary AND c.relnamespace = 'public'::regnamespace"
    )
    assert (await tenant_tables(rival)).items() <= dict(leading).items()


async def test_the_role_cannot_bypass_it(connection: psycopg.AsyncConnection[Any]) -> None:
    """Neither by itself nor through a role that it could become."""
    cursor = await connection.execute(
        "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole, rolreplication FROM pg_roles"
        " WHERE rolname = current_user OR pg_has_role(current_user, oid, 'MEMBER')"
    )
    roles = await cursor.fetchall()
    # The owner of a database is a member of the last one while connected to it.
    assert {name for name, *_ in roles} == {"core_under_test", "pg_database_owner"}
    assert not any(right for _, *rights in roles for right in rights)


@pytest.mark.parametrize("setting", [None, "", "org_unknown", "%", "NULL"])
async def test_without_its_tenant_nothing_is_visible(
    connection: psycopg.AsyncConnection[Any], tenants: tuple[Tenant, Tenant], rival: Rival, setting: str | None
) -> None:
    both = {tenant.organization_id for tenant in tenants}
    for table, column in (await tenant_tables(rival)).items():
        rows = await rival.rows(f"SELECT DISTINCT {column} FROM {table}")
        # The sealing of an earlier test may have added one of a tenant of its own.
        assert {organization_id for (organization_id,) in rows} >= both, f"{table} has rows of both"
        async with connection.transaction():
            if setting is not None:
                await choose(connection, setting)
            assert await seen(connection, table, column) == set(), table


async def test_a_tenant_sees_its_own_rows_only(
    connection: psycopg.AsyncConnection[Any], tenants: tuple[Tenant, Tenant], rival: Rival
) -> None:
    for tenant in tenants:
        for table, column in (await tenant_tables(rival)).items():
            async with connection.transaction():
                await choose(connection, tenant.organization_id)
                assert await seen(connection, table, column) == {tenant.organization_id}, table


async def test_no_row_of_another_tenant_can_be_changed_or_deleted(
    connection: psycopg.AsyncConnection[Any], tenants: tuple[Tenant, Tenant], rival: Rival
) -> None:
    own, foreign = tenants
    for table, column in (await tenant_tables(rival)).items():
        before = await rival.rows(f"SELECT t::text FROM {table} t WHERE {column} = %s", foreign.organization_id)
        async with connection.transaction(force_rollback=True):
            await choose(connection, own.organization_id)
            for statement in (f"UPDATE {table} SET {column} = {column}", f"DELETE FROM {table}"):
                cursor = await connection.execute(
                    f"{statement} WHERE {column} = %s".encode(), [foreign.organization_id]
                )
                assert cursor.rowcount == 0, statement
        assert await rival.rows(f"SELECT t::text FROM {table} t WHERE {column} = %s", foreign.organization_id) == before


async def test_no_row_can_be_given_to_another_tenant(
    connection: psycopg.AsyncConnection[Any], tenants: tuple[Tenant, Tenant], rival: Rival
) -> None:
    """Neither a new row nor an existing one."""
    own, foreign = tenants
    for table, column in (await tenant_tables(rival)).items():
        copied = f"INSERT INTO {table} SELECT (jsonb_populate_record(t, jsonb_build_object(%s::text, %s::text))).*"
        moved = f"UPDATE {table} SET {column} = %s"
        for statement, params in (
            (f"{copied} FROM {table} t LIMIT 1", [column, foreign.organization_id]),
            (moved, [foreign.organization_id]),
        ):
            async with connection.transaction(force_rollback=True):
                await choose(connection, own.organization_id)
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                    await connection.execute(statement.encode(), params)


@pytest.mark.parametrize("statement", ["SET SESSION AUTHORIZATION DEFAULT", "RESET ROLE", "SET ROLE NONE"])
@pytest.mark.usefixtures("tenants")
async def test_resetting_the_role_shows_nothing(connection: psycopg.AsyncConnection[Any], statement: str) -> None:
    await connection.execute(statement.encode())
    assert await seen(connection, "codes", "organization_id") == set()


@pytest.mark.usefixtures("tenants")
async def test_it_cannot_be_switched_off(connection: psycopg.AsyncConnection[Any]) -> None:
    """The setting asks for an error in place of fewer rows."""
    await connection.execute("SET row_security = off")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        await seen(connection, "codes", "organization_id")


OF_EVERYBODY: Final = {
    "accounting_customers",
    "accounting_outbox",
    "audience_entitlements",
    "audit_entries",
    "checkouts",
    "closures",
    "codes",
    "invitations",
    "issuance_receipts",
    "organizations",
    "subscriptions",
    "webhook_acts",
    "webhook_deliveries",
    "webhook_endpoints",
    "webhook_events",
    "tickets",
    "ticket_replies",
}


async def test_the_operators_queries_about_all_tenants_reach_few_tables(
    connection: psycopg.AsyncConnection[Any], tenants: tuple[Tenant, Tenant], rival: Rival
) -> None:
    """A signing key may not retire while any Code needs it, a new master key seals every waiting invitation, what
    an issuance answered is forgotten after a day, and what was requested of Audience gets its outcome.
    And what began to be deleted is deleted.
    """
    both = {tenant.organization_id for tenant in tenants}
    for table, column in (await tenant_tables(rival)).items():
        async with connection.transaction(force_rollback=True):
            await choose(connection, EVERY_TENANT)
            assert await seen(connection, table, column) == (both if table in OF_EVERYBODY else set()), table
            cursor = await connection.execute(f"DELETE FROM {table}".encode())
            assert cursor.rowcount == (len(both) if table in FORGOTTEN else 0), table


async def test_a_person_sees_their_memberships_and_nothing_else(
    connection: psycopg.AsyncConnection[Any], tenants: tuple[Tenant, Tenant], rival: Rival
) -> None:
    """The memberships let them choose an organisation; its content is visible after Core has found them in it."""
    own, foreign = tenants
    await rival.run("UPDATE members SET subject_id = 'other' WHERE organization_id = %s", foreign.organization_id)
    for table, column in (await tenant_tables(rival)).items():
        async with connection.transaction():
            await connection.execute("SET LOCAL soundmark.subject TO 'operator'")
            visible = {own.organization_id} if table in OF_SUBJECT else set()
            assert await seen(connection, table, column) == visible, table
            cursor = await connection.execute(f"DELETE FROM {table}".encode())
            assert cursor.rowcount == 0, table


@pytest.mark.parametrize("subject", ["operator", "nobody", "x', true); DROP TABLE codes; --"])
async def test_the_organisations_of_a_person_are_those_they_belong_to(
    connection: psycopg.AsyncConnection[Any], tenants: tuple[Tenant, Tenant], rival: Rival, subject: str
) -> None:
    own, foreign = tenants
    await rival.run("UPDATE members SET subject_id = 'other' WHERE organization_id = %s", foreign.organization_id)
    expected = [(own.organization_id, "owner")] if subject == "operator" else []
    cursor = await connection.execute("SELECT id, role FROM organizations_of_member(%s)", [subject])
    assert await cursor.fetchall() == expected
    assert await seen(connection, "organizations", "id") == set(), "the tenant ended with the statement"
