"""The bare statements of an issuance as a script of pgbench: what PostgreSQL's own part of it costs."""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, LiteralString, TypeAlias

from psycopg import ClientCursor, connect
from psycopg import sql as driver_sql

from bench import seed
from bench.service import Seeded, key_of
from soundmark.core.domain.codes.address import address_of
from soundmark.core.domain.codes.code import sign_code
from soundmark.core.domain.log.entry import commit_issued
from soundmark.core.domain.tenancy.scope import Actor, TenantScope, User
from soundmark.core.steps import audit
from soundmark.core.store.billing import subscriptions
from soundmark.core.store.codes import code_entitlements, code_usage, codes
from soundmark.core.store.tenancy import members, organizations, projects
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.postgres.transaction import Params
from soundmark.kit.text.months import day_of, month_of

_Statement: TypeAlias = tuple[LiteralString, Params | None]
_READS_COUNT: Final = 6
_ORGANIZATION: Final = "org_recorded"
_XR_ID: Final = "xr_recorded"
_TOKEN: Final = "brd_recorded"
_ENTRY: Final = "aud_recorded"
_PERSON: Final = User(subject_id="operator", email="operator@localhost", has_mfa=True, is_platform_admin=True)


def script_of(database: Seeded, organizations_count: int) -> str:
    """Return a script in which each client issues single Codes for an organisation of its own, in two round trips."""
    statements = asyncio.run(_record(database))
    ids = ",".join(f"'{seed.organization_id_of(number)}'" for number in range(organizations_count))
    organization = f"(ARRAY[{ids}])[:client_id + 1]"
    unique = "md5(random()::text || clock_timestamp()::text)"
    lines = ["\\startpipeline", "BEGIN;", f"SELECT set_config('soundmark.tenant', {organization}, true);"]
    with connect(database.everything.reveal()) as connection:
        cursor = ClientCursor(connection)
        for number, (statement, params) in enumerate(statements):
            if number == _READS_COUNT:
                lines += ["\\endpipeline", "\\startpipeline"]
            text = " ".join(cursor.mogrify(driver_sql.SQL(statement), params).split())
            text = text.replace(f"'{_ORGANIZATION}'", organization)
            for mark, prefix in ((_XR_ID, "xr_"), (_TOKEN, "brd_"), (_ENTRY, "aud_")):
                text = text.replace(f"'{{\"{mark}\"}}'", f"ARRAY['{prefix}' || {unique}]")
            lines.append(text + ";")
    return "\n".join([*lines, "COMMIT;", "\\endpipeline", ""])


class _Recorder:
    """A transaction that keeps the statements, and finds nothing."""

    def __init__(self) -> None:
        self.statements: Final[list[_Statement]] = []

    def announce(self, name: str) -> None:
        """Do nothing."""

    async def all(
        self,
        record: type[Any],  # noqa: ARG002 - nothing is found
        statement: LiteralString,
        params: Params | None = None,
        *,
        plan_anew: bool = False,  # noqa: ARG002 - as above
    ) -> list[Any]:
        self.statements.append((statement, params))
        return []

    async def one_or_none(self, record: type[Any], statement: LiteralString, params: Params | None = None) -> None:  # noqa: ARG002 - as above
        self.statements.append((statement, params))

    async def value(self, statement: LiteralString, params: Params | None = None) -> None:
        self.statements.append((statement, params))

    async def rows(self, statement: LiteralString, params: Params | None = None) -> list[tuple[Any, ...]]:
        self.statements.append((statement, params))
        return []

    async def run(self, statement: LiteralString, params: Params | None = None) -> None:
        self.statements.append((statement, params))


async def _record(database: Seeded) -> list[_Statement]:
    """Return the statements of an issuance of one Code without campaign and key: six reads, then three writes."""
    now, tx = datetime.now(UTC), _Recorder()
    scope = TenantScope(_ORGANIZATION, None, Actor("user", "operator"), _PERSON, "owner", frozenset({"owner"}))
    key = await asyncio.to_thread(key_of, database)
    facts = replace(seed.facts_of(key, now), organization_id=_ORGANIZATION)
    code = sign_code(facts, key, xr_id=_XR_ID, broadcast_token=_TOKEN)
    entry = audit.entry_of(
        scope, SystemEntropy(), "code.issued", now=now, project_id=seed.PROJECT_ID, xr_id="xr_" + "a" * 22
    )
    steps: list[Coroutine[Any, Any, Any]] = [
        members.hold_role(tx, scope, "operator"),
        organizations.hold_open(tx, _ORGANIZATION),
        projects.hold_open_many(tx, _ORGANIZATION, [seed.PROJECT_ID]),
        code_entitlements.lock(tx, _ORGANIZATION),
        code_usage.count_issued(tx, _ORGANIZATION, month_of(now)),
        subscriptions.list_live_quotas(tx, _ORGANIZATION, None),
        codes.insert(tx, [code], [address_of(seed.RESOURCE)], commit_issued([code])),
        code_usage.insert_or_add(tx, _ORGANIZATION, day_of(now), 1),
        audit.record_all(tx, [replace(entry, id=_ENTRY)]),
    ]
    for step in steps:
        with contextlib.suppress(AssertionError):  # It found nothing.
            await step
    return tx.statements
