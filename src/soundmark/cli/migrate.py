"""`soundmark migrate`: bring a component's database to the current schema."""

from typing import Annotated

import typer

from soundmark.cli import Refused
from soundmark.cli.databases import database_settings
from soundmark.cli.deployment import DataDir
from soundmark.kit.postgres.migrations import MigrationFailed
from soundmark.kit.postgres.migrations import migrate as apply_revisions
from soundmark.settings import AudienceDatabaseSettings, WithDatabase
from soundmark.settings.process import PUBLIC_SCHEMA

app = typer.Typer(add_completion=False)


@app.command()
def migrate(
    component: Annotated[WithDatabase, typer.Argument(help="The component whose database to migrate.")],
    data_dir: DataDir = None,
) -> None:
    """Migrate a component's database to the current schema. Repeating it, or running it twice concurrently, is safe."""
    url, given = database_settings(component, data_dir)
    schema = given.audience_schema if isinstance(given, AudienceDatabaseSettings) else PUBLIC_SCHEMA
    try:
        applied = apply_revisions(url, f"soundmark.{component}", schema=schema)
    except MigrationFailed as failed:
        raise Refused(f"{component} was not migrated: {failed}") from None
    typer.echo(f"{component}: {'applied ' + ', '.join(applied) if applied else 'already current'}", err=True)
