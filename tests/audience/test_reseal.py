"""A change of Audience's master key: every secret moves to it, or none does."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.audience.client import MASTER_KEY, AudienceApi, audience_settings, running_audience
from support.database.rival import Rival

from soundmark.audience.secrets import open_hmac_secret, token_key
from soundmark.audience.store.sealed_values import SEALED_COLUMNS
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.resealing import Resealed, ResealRefused, require_openable, reseal
from soundmark.kit.crypto.sealing import Sealer, parse_master_key
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.http.server.serve import CannotStart
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.migrations import migrate

SCHEMA = (Path(__file__).parents[2] / "src" / "soundmark" / "audience" / "schema.sql").read_text(encoding="utf-8")
NEW_KEY, WRONG_KEY = "A" * 43, "B" * 42 + "A"
OLD, NEW, WRONG = (Sealer(parse_master_key(key), SystemEntropy()) for key in (MASTER_KEY, NEW_KEY, WRONG_KEY))
DATABASE = "audience_resealed"


@pytest.fixture
def url(cluster: RunningCluster) -> Secret:
    """A database of its own: the values that a running Audience needs to find again move as well."""
    made = cluster.create_role_and_database(DATABASE)
    migrate(made, "soundmark.audience")
    return made


@pytest.fixture
async def rival(url: Secret, cluster: RunningCluster) -> Rival:
    """A second connection, which alters rows and holds locks."""
    assert url is not None, "the tables are there"
    found = Rival(cluster.superuser_url_of(DATABASE))
    await found.run("TRUNCATE integrations, measured_codes, operations, instance_secrets")
    return found


@pytest.fixture
async def api(url: Secret, rival: Rival) -> AsyncIterator[AudienceApi]:
    """An Audience with the old master key."""
    assert rival is not None, "the database is empty"
    async with running_audience(audience_settings(url)) as running:
        yield running


@pytest.fixture
async def db(url: Secret) -> AsyncIterator[Database]:
    """An open database with a pool of its own."""
    opened = Database(url, pool_size=2, application_name="tests")
    await opened.open()
    yield opened
    await opened.close()


async def sealed(rival: Rival) -> list[tuple[str, bytes]]:
    return await rival.rows(
        "SELECT id, sealed_secret FROM integrations UNION ALL SELECT name, sealed FROM instance_secrets ORDER BY 1"
    )


def test_every_sealed_column_of_the_schema_is_known() -> None:
    """A new column that is not moved would be lost with the old key."""
    found = set()
    for table, body in re.findall(r"^CREATE TABLE (\w+) \((.*?)^\)", SCHEMA, re.MULTILINE | re.DOTALL):
        found |= {(table, column) for column in re.findall(r"^    (\w*seal\w*) +bytea", body, re.MULTILINE)}
    assert {(column.table, column.column) for column in SEALED_COLUMNS.columns} == found


async def test_the_secrets_of_every_tenant_move(api: AudienceApi, db: Database, rival: Rival) -> None:
    made = [await api.make_integration(organization_id=f"org_number_{n}") for n in range(3)]
    digests_before = await token_key(db, OLD, SystemClock(), SystemEntropy())

    assert await reseal(db, SEALED_COLUMNS, old=[OLD], new=NEW) == Resealed(moved_count=4, already_count=0)

    envelopes = dict(await sealed(rival))
    for one in made:
        assert open_hmac_secret(NEW, one.id, envelopes[one.id]).reveal() == one.hmac_secret
    assert await token_key(db, NEW, SystemClock(), SystemEntropy()) == digests_before, "no token of today is new"
    assert await reseal(db, SEALED_COLUMNS, old=[OLD], new=NEW) == Resealed(moved_count=0, already_count=4)


async def test_values_sealed_by_an_old_process_move_the_next_time(api: AudienceApi, db: Database) -> None:
    given = await api.make_integration()
    await reseal(db, SEALED_COLUMNS, old=[OLD], new=NEW)
    await given.change("secret")
    await api.make_integration()

    assert await reseal(db, SEALED_COLUMNS, old=[OLD], new=NEW) == Resealed(moved_count=2, already_count=1)


async def test_one_value_that_does_not_open_keeps_all_others_from_moving(
    api: AudienceApi, db: Database, rival: Rival
) -> None:
    given = await api.make_integration()
    foreign = WRONG.seal(b"x", table="integrations", column="sealed_secret", row=given.id)
    await api.make_integration()
    await rival.run("UPDATE integrations SET sealed_secret = %s WHERE id = %s", foreign, given.id)
    before = await sealed(rival)

    for refused in (reseal(db, SEALED_COLUMNS, old=[OLD], new=NEW), require_openable(db, SEALED_COLUMNS, [OLD, NEW])):
        with pytest.raises(ResealRefused, match=rf"^integrations\.sealed_secret of {given.id} opens neither"):
            await refused
    assert await sealed(rival) == before
    await require_openable(db, SEALED_COLUMNS, [OLD, NEW, WRONG])


async def test_dying_in_the_middle_changes_nothing(api: AudienceApi, db: Database, rival: Rival) -> None:
    await api.make_integration()
    before = await sealed(rival)
    await rival.run(
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER"
        " AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$"
    )
    await rival.run("CREATE TRIGGER dying BEFORE UPDATE ON instance_secrets FOR EACH ROW EXECUTE FUNCTION die()")
    try:
        with pytest.raises(DatabaseUnavailable):
            await reseal(db, SEALED_COLUMNS, old=[OLD], new=NEW)
    finally:
        await rival.run("DROP FUNCTION die CASCADE")
    assert await sealed(rival) == before

    assert (await reseal(db, SEALED_COLUMNS, old=[OLD], new=NEW)).moved_count == 2


async def test_a_rotation_under_way_is_awaited_and_moved(api: AudienceApi, db: Database, rival: Rival) -> None:
    given = await api.make_integration()
    async with rival.committing("UPDATE integrations SET sealed_secret = sealed_secret WHERE id = %s", given.id):
        moving = await rival.while_waiting(reseal(db, SEALED_COLUMNS, old=[OLD], new=NEW))

    assert (await moving).moved_count == 2


async def test_afterwards_audience_starts_only_with_the_new_key(api: AudienceApi, db: Database, url: Secret) -> None:
    given = await api.make_integration()
    await reseal(db, SEALED_COLUMNS, old=[OLD], new=NEW)

    with pytest.raises(CannotStart, match="master key"):
        async with running_audience(audience_settings(url)):
            pass
    async with running_audience(audience_settings(url, master_key=NEW_KEY)) as fresh:
        answer = await fresh.call("GET", f"/v1/integrations/{given.id}", params=given.query)
        assert answer.json == given.view
