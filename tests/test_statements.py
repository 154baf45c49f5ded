"""Rules for all SQL statements of the stores, checked by reading the stores themselves."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
import sqlglot
from sql_tenants import unnamed_tenants
from sqlglot import exp

import soundmark

SOURCE: Final = Path(soundmark.__file__).parent
VERBS: Final = ("get", "find", "list", "lock", "hold", "insert", "update", "delete", "count")
STATEMENT: Final = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\s")
TABLE: Final = re.compile(r"^CREATE TABLE (\w+) \((.*?)^\)", re.MULTILINE | re.DOTALL)

EVERY_TENANT: Final = {
    "core.billing.catalog_lists.list_accounting_customers": "administrators of the platform see every organisation's",
    "core.billing.catalog_lists.list_audience_contracts": "administrators of the platform see every organisation's",
    "core.billing.checkouts.list_expired": "a job expires the checkouts of every organisation",
    "core.billing.checkouts.list_without_page": "a job fails what a crash left without a page, in every organisation",
    "core.billing.outbox.count_by_status": "the metrics count the draft invoices of every organisation",
    "core.billing.outbox.find_organization_id": "an operator names a draft invoice by its id alone",
    "core.support.desk_conversations.find": "a delivery of the support desk names no organisation",
    "core.support.tickets.find_organization_id": "a delivery of the support desk names a ticket by its id alone",
    "core.billing.references.find": "a provider's notification names no organisation",
    "core.billing.subscriptions.list_over": "a job ends what is over, in every organisation",
    "core.billing.subscriptions.list_holders": "a plan's new quota is that of every organisation that has it",
    "core.audience.cells.count_organizations": "a new organisation gets the cell that has the fewest of all",
    "core.audience.cells.find_of_integration": "an event names an integration, and no organisation",
    "core.audience.cells.list_in_use": "Core is not ready without a cell that any organisation has",
    "core.audience.entitlements.list_with_successor": "a job carries on with the next one, in every organisation",
    "core.billing.references.find_local_payment": "a provider's notification names no organisation",
    "core.billing.receipts.delete_foreign": "a daily job deletes the receipts of events that are not ours",
    "core.billing.receipts.find": "an event is recorded before it is understood which organisation it is about",
    "core.billing.receipts.list_due": "a job asks about the pending events of every organisation",
    "core.billing.receipts.update_outcome": "a receipt is known by the event's id, which is its primary key",
    "core.billing.receipts.update_due": "a receipt is known by the event's id, which is its primary key",
    "core.billing.receipts.update_reread": "a receipt is known by the event's id, which is its primary key",
    "core.billing.checkouts.list_due": "a job asks about the pending checkouts of every organisation",
    "core.codes.broadcasts.find_live": "a receiver names a token, and no organisation",
    "core.platform.abuse_reports.list_organizations_of_codes": "reports may name Codes by their ids alone",
    "core.tenancy.suspensions.list_organizations": "administrators of the platform see every organisation",
    "core.tenancy.audit.list_requested": "a job settles what a crash left requested, in every organisation",
    "core.tenancy.audit_chain.list_waiting_tenants": "a sealer asks every five seconds who has unsealed entries",
    "core.tenancy.logged_heads.list_grown": "a job asks once a minute whose chain has grown",
    "core.webhooks.dispatch.list_waiting": "the dispatcher serves the endpoints of every organisation in turn",
    "core.webhooks.dispatch.list_postponed_tenants": "a clock that was set back postpones deliveries everywhere",
    "core.webhooks.dispatch.find_backlog": "metrics are about all organisations together",
    "core.codes.codes.find_unexpired_signed_by": "a signing key may not retire while any Code needs it",
    "core.codes.decode_certificates.find_organization_id": "everybody who knows the id of a certificate may read it",
    "core.tenancy.invitations.find_by_digest": "an invitation's secret comes without its organisation",
    "core.codes.issuance_receipts.delete_older": "an hourly job deletes the expired receipts of every organisation",
    "core.tenancy.members.count_owned": "the limit on organisations is one person's, across all of them",
    "core.tenancy.closures.list_abandoned": "a job resumes the interrupted closures of every organisation",
    "core.webhooks.fan_out.list_tenants": "the worker asks several times a second which organisations have acts",
    "core.webhooks.expiries.list_tenants": "a job announces the expired Codes of every organisation with endpoints",
    "core.webhooks.retention.list_tenants": "a job deletes the old events of every organisation",
    "core.webhooks.retention.list_abandoned": "a job deletes the deliveries of every deleted endpoint",
    "core.platform.sealed_values.SEALED_COLUMNS": "a new master key seals every organisation's waiting invitations",
    "audience.ingestion.find_sources": "an event names its integration, and comes without an organisation",
    "audience.integrations.find_workspace": "a report names its integration; the answer is the organisation",
    "audience.integrations.lock_unrevoked": "every integration is to trust a new signing key",
    "audience.integrations.update_core_key": "it takes the ids of integrations that were locked",
    "audience.integrations.update_previous_until": "it takes the ids of integrations that were locked",
    "audience.operations.find": "Core asks by id, and an id that another organisation used is a conflict",
    "audience.retention.AGED_TABLES": "the daily retention walks the blocks of a table, across organisations",
    "audience.ingestion.insert_codes": "it takes the integrations of the given Codes, each by itself",
    "audience.ingestion.insert_months": "it takes the organisations of integrations that were just found",
    "audience.purges.DELETE_EVENTS": "it finds the rows by the integrations of the organisation",
    "audience.purges.DELETE_EVENT_IDS": "it finds the rows by the integrations of the organisation",
    "audience.purges.DELETE_INTEGRITY_DAYS": "it finds the rows by the integrations of the organisation",
    "audience.purges.DELETE_MEASURED_CODES": "it finds the rows by the integrations of the organisation",
    "audience.purges.DELETE_SPENT_PROOFS": "it finds the rows by the integrations of the organisation",
    "audience.purges.count_remaining": "it takes the numbers of integrations that were just deleted",
    "audience.sealed_values.SEALED_COLUMNS": "a new master key seals every integration's secret",
}
# One statement writes both halves of a Code, so that neither exists without the other.
BOTH_HALVES: Final = {"core.codes.codes.insert", "core.codes.codes.update_revoked_in_campaign"}
# The constants that they make are judged.
MAKERS_OF_CONSTANTS: Final = {
    "audience.purges._deleting",
    "audience.retention._aged_table",
    "core.platform.sealed_values._of_platform",
    "core.platform.sealed_values._of_tenants",
    "core.tenancy.deletions._deleting",
}
NO_STORE_VERB: Final = {
    "core.billing.subscriptions.has_unending_card": "it answers yes or no",
    "core.log.queue.notify": "it notifies and reads no table",
    "core.webhooks.dispatch.notify_due": "it notifies and reads no table",
    "audience.distribution.is_distributed": "it answers yes or no, from the server's catalogue",
    "audience.ingestion.prepare_connection": "it sets the planner, once for each connection",
    "audience.ingestion.prepare_transaction": "it sets the planner, behind a pooler",
    "audience.reports.keep_to_index": "it sets the planner and reads no table",
}


def modules(component: str) -> Iterator[ModuleType]:
    for path in sorted((SOURCE / component / "store").rglob("[!_]*.py")):
        yield importlib.import_module(".".join(("soundmark", *path.relative_to(SOURCE).with_suffix("").parts)))


def statements(component: str) -> Iterator[tuple[str, str]]:
    """Return each statement of a component's stores, with the function or constant that it belongs to."""
    for module in modules(component):
        where = module.__name__.removeprefix("soundmark.").replace(".store", "")
        for name, text in statements_of(inspect.getsource(module), vars(module)):
            if (full_name := f"{where}.{name}") not in MAKERS_OF_CONSTANTS:
                yield full_name, text


def statements_of(source: str, constants: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Return the statements of a module; a private part of them counts where a function uses it, not on its own."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            texts = [(node.name, text) for text in texts_in(node, constants)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            value = constants[node.target.id]
            is_part = isinstance(value, str) and node.target.id.startswith("_")
            texts = [] if is_part else [(node.target.id, text) for text in strings(value)]
        else:
            texts = []
        yield from ((name, text) for name, text in texts if STATEMENT.match(text))


def texts_in(node: ast.AST, constants: Mapping[str, object]) -> Iterator[str]:
    """Return the texts in a node, except those that are part of another text."""
    for child in ast.iter_child_nodes(node):
        text = joined(child, constants)
        if text is None:
            yield from texts_in(child, constants)
        else:
            yield text


def joined(node: ast.AST, constants: Mapping[str, object]) -> str | None:
    """Return the text that a node stands for: a literal, a constant of its module, or several of them joined."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name) if isinstance(text := constants.get(name), str):
            return text
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = joined(left, constants), joined(right, constants)
            return None if first is None or second is None else first + second
        case _:
            return None


def strings(value: object) -> Iterator[str]:
    """Return the texts in a constant, which may be a record or a sequence of records."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from strings(one)
    elif hasattr(value, "__dataclass_fields__"):
        yield from strings([getattr(value, name) for name in value.__dataclass_fields__])


def tenant_keys(component: str) -> dict[str, str]:
    """Return the tenant tables, each with the column that names the tenant of a row.

    Audience's events carry the number of their integration, which always belongs to the same organisation.
    """
    schema = files(f"soundmark.{component}").joinpath("schema.sql").read_text(encoding="utf-8")
    keys = {}
    for table, columns in TABLE.findall(schema):
        names = set(re.findall(r"^    ([a-z_]+) ", columns, re.MULTILINE))
        # The first is keyed by its token, and its organisation finds a suspension; the second is the platform's.
        if table in {"broadcasts", "abuse_reports"}:
            continue
        if table == "organizations":
            keys[table] = "id"
        elif names & {"organization_id", "integration"}:
            keys[table] = "organization_id" if "organization_id" in names else "integration"
    return keys


@pytest.mark.parametrize("component", ["core", "audience"])
def test_a_statement_on_tenant_rows_names_the_tenant(component: str) -> None:
    """This allows a table to be partitioned by organisation. The exceptions are queries about all tenants."""
    keys = tenant_keys(component)
    assert len(keys) > 9
    found = dict[str, set[str]]()
    for name, statement in statements(component):
        found.setdefault(name, set()).update(unnamed_tenants(statement, keys))
    assert len(found) > 20
    assert {name for name, tables in found.items() if tables} == {
        name for name in EVERY_TENANT if name.startswith(f"{component}.")
    }


def test_a_statement_that_does_not_name_the_tenant_is_detected(subtests: pytest.Subtests) -> None:
    for statement in [
        "SELECT xr_id FROM codes",
        "SELECT xr_id FROM codes WHERE organization_id = %(a)s OR xr_id = %(b)s",
        "SELECT xr_id FROM codes WHERE organization_id > %(a)s",
        "SELECT xr_id FROM codes WHERE organization_id = campaign_id",
        "UPDATE codes SET organization_id = %(a)s",
        "DELETE FROM codes USING projects p WHERE p.organization_id = %(a)s AND p.id = codes.project_id",
        "INSERT INTO codes (xr_id) VALUES (%(a)s)",
        "SELECT p.id FROM projects p JOIN codes c ON c.organization_id = p.organization_id",
        "SELECT id FROM projects WHERE organization_id = %(a)s AND EXISTS (SELECT FROM codes WHERE xr_id = %(b)s)",
        "WITH old AS (DELETE FROM codes WHERE xr_id = %(a)s RETURNING xr_id) SELECT xr_id FROM old",
    ]:
        with subtests.test(statement=statement):
            keys = {"codes": "organization_id", "projects": "organization_id"}
            assert "codes" in unnamed_tenants(statement, keys)


def test_a_statement_is_judged_with_the_constants_that_it_is_joined_from(subtests: pytest.Subtests) -> None:
    for statement, is_named in [
        ('_SELECT + "WHERE organization_id = %(a)s"', True),
        ('_SELECT + "WHERE xr_id = %(a)s"', False),
        ("_SELECT", False),
        ("_SELECT + condition", False),
        ('"DELETE FROM codes WHERE xr_id = %(a)s RETURNING " + _COLUMNS', False),
    ]:
        with subtests.test(statement=statement, is_named=is_named):
            source = f"""
_COLUMNS: Final[LiteralString] = "xr_id, issuer"
_SELECT: Final[LiteralString] = "SELECT " + _COLUMNS + " FROM codes "

async def find(tx: Tx, condition: LiteralString) -> Code | None:
    return await tx.one_or_none(Code, {statement}, {{"a": "b"}})
"""
            constants = {"_COLUMNS": "xr_id, issuer", "_SELECT": "SELECT xr_id, issuer FROM codes "}
            ((name, text),) = statements_of(source, constants)
            assert name == "find"
            assert (unnamed_tenants(text, {"codes": "organization_id"}) == set()) is is_named


# The functions of Audience's stores that take advisory locks, as docs/locks.md has them, and those that look at places
# in a table's file. An engine that distributes tables has a file and locks of its own for each part.
WITH_ADVISORY_LOCKS: Final = {
    "audience.operations.lock",
    "audience.purges.hold_tenant",
    "audience.purges.lock_tenant",
    "audience.retention.hold",
    "audience.retention.lock",
}
WITH_PLACES: Final = {
    "audience.purges.DELETE_EVENTS": "rows of integrations, each found by an index that begins with the integration",
    "audience.purges.DELETE_EVENT_IDS": "as above",
    "audience.purges.DELETE_INTEGRITY_DAYS": "as above",
    "audience.purges.DELETE_MEASURED_CODES": "as above",
    "audience.purges.DELETE_SPENT_PROOFS": "as above",
    "audience.retention.AGED_TABLES": "one table is walked in the order of its file, which needs no index by day",
    "audience.retention.count_blocks": "where the walk ends; an empty file is no proof of an empty table",
}


def test_tables_of_integrations_can_be_divided_by_them() -> None:
    """As record 40 says: each unique key contains the integration, and no number comes from a counter of the table."""
    schema = files("soundmark.audience").joinpath("schema.sql").read_text(encoding="utf-8")
    tables = {
        name: columns
        for name, columns in TABLE.findall(schema)
        if re.search(r"^    integration ", columns, re.MULTILINE)
    }
    assert len(tables) == 5
    for name, columns in tables.items():
        keys = re.findall(r"(?:PRIMARY KEY|UNIQUE) \(([^)]*)\)", columns)
        assert keys, f"{name} has a key"
        assert all("integration" in re.split(r",\s*", key) for key in keys), name
        assert not re.search(r"IDENTITY|serial|nextval", columns), name
    indexed = re.findall(r"CREATE UNIQUE INDEX \w+ ON (\w+)", schema)
    assert not set(indexed) & set(tables)


def test_places_and_advisory_locks_are_where_the_reasons_are() -> None:
    found = list(statements("audience"))
    assert {name for name, text in found if "advisory" in text} == WITH_ADVISORY_LOCKS
    places = re.compile(r"\bctid\b|pg_relation_size|pg_export_snapshot")
    assert {name for name, text in found if places.search(text)} == WITH_PLACES.keys()


def test_the_planner_and_snapshots_are_handled_in_one_place_each() -> None:
    """So that one place changes where a server cannot do it."""

    def users(text: str) -> set[str]:
        return {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if text in path.read_text("utf-8")}

    assert users("force_generic_plan") == {"audience/store/ingestion.py", "kit/postgres/shared_connection.py"}
    assert users("pg_export_snapshot") == {"kit/postgres/database.py", "embedded/dumps.py"}
    assert users(".beside(") == {"audience/features/reports/service.py"}


def test_no_statement_joins_a_code_and_its_broadcast() -> None:
    """They have different keys: codes are keyed by organisation, broadcasts by token."""
    found = {
        name
        for name, statement in statements("core")
        if {"codes", "broadcasts"}
        <= {table.name for table in sqlglot.parse_one(statement, "postgres").find_all(exp.Table)}
    }
    assert found == BOTH_HALVES


def test_the_query_of_resolutions_can_be_partitioned_by_token() -> None:
    """It selects a set of tokens from one table, row by row, and only the hot path runs it.

    The suspended organisations are few, so each part may have all of them.
    """
    text = dict(statements("core"))["core.codes.broadcasts.find_live"]
    tree = sqlglot.parse_one(text, dialect="postgres")
    assert [table.name for table in tree.find_all(exp.Table)] == ["broadcasts", "suspended_organizations"]
    assert tree.find(exp.Group, exp.Order, exp.Limit, exp.AggFunc) is None
    users = {path.relative_to(SOURCE).parent for path in SOURCE.rglob("*.py") if "find_live" in path.read_text("utf-8")}
    assert users == {Path("core/store/codes"), Path("core/hot")}


@pytest.mark.parametrize("component", ["core", "audience"])
def test_a_function_of_a_store_begins_with_a_store_verb(component: str) -> None:
    names = [
        f"{module.__name__.removeprefix('soundmark.').replace('.store', '')}.{name}"
        for module in modules(component)
        for name, function in inspect.getmembers(module, inspect.iscoroutinefunction)
        if function.__module__ == module.__name__
    ]
    assert len(names) > 20
    others = {name for name in names if name.rpartition(".")[2].partition("_")[0] not in VERBS}
    assert others == {name for name in NO_STORE_VERB if name.startswith(f"{component}.")}
