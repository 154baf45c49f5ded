"""`soundmark openapi` and `soundmark schemas`: the published contract, without a database or a service."""

from pathlib import Path
from typing import Annotated

import typer

from soundmark.cli import Refused
from soundmark.cli.deployment import read_settings
from soundmark.cli.whole_files import write_whole
from soundmark.core.app import bare_app
from soundmark.core.published.routes import openapi_document, schema_documents
from soundmark.settings import ContractSettings

openapi = typer.Typer(add_completion=False)
schemas = typer.Typer(add_completion=False)


@openapi.command("openapi")
def write_openapi(
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file to write. Default: standard output.")
    ] = None,
) -> None:
    """Write the OpenAPI document, byte for byte what Core serves at /openapi.json.

    Its URLs begin with SOUNDMARK_BASE_URL, or http://127.0.0.1:8080.
    """
    document = openapi_document(bare_app(), read_settings(ContractSettings).base_url)
    if out is None:
        typer.echo(document, nl=False)
    else:
        with write_whole(out) as file:
            file.write(document.encode())


@schemas.command("schemas")
def write_schemas(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write to; it is created if missing.")],
) -> None:
    """Write every JSON Schema, byte for byte what Core serves below /schemas.

    Their URLs begin with SOUNDMARK_BASE_URL, or http://127.0.0.1:8080.
    """
    documents = schema_documents(read_settings(ContractSettings).base_url)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"{out} cannot be created: {error.strerror}") from None
    for name, document in documents.items():
        with write_whole(out / f"{name}.json") as file:
            file.write(document.encode())
        typer.echo(out / f"{name}.json")
