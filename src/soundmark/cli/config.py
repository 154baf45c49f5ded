"""`soundmark config`: check the settings in the environment."""

import asyncio
import os
from pathlib import Path
from typing import Annotated, Final

import typer

from soundmark import settings
from soundmark.cli import Refused
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.outbound.fetching import FetchFailed
from soundmark.kit.http.outbound.issuer_keys import NamesAnotherIssuer, check_issuer
from soundmark.kit.postgres.sessions import CannotConnect, SessionOptions, find_missing_settings
from soundmark.kit.settings import SettingsInvalid

# What is wrong with an identity provider, by the reason in Core's log.
_REASONS: Final = {
    "deadline": "it does not answer in time",
    "malformed_json": "its response is not JSON",
    "no_address_of_keys": "its discovery document names no https URL for its keys (jwks_uri)",
    "no_usable_key": "it publishes no key that verifies access tokens (RS256, PS256, ES256 or EdDSA)",
    "not_an_object": "its response is not a JSON object",
    "oversized": "its response is too long",
    "status": "it does not answer with status 200",
    "unreachable": "it cannot be reached",
}
_LIMITS_ALONE: Final = (
    "warning: SOUNDMARK_RATE_LIMIT_URL is not set for {components}. With several processes, each counts alone, so "
    "clients get every limit several times."
)

_Pooled = tuple[Secret, SessionOptions]

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def config() -> None:
    """Check the settings in the environment."""


@app.command()
def check(
    component: Annotated[
        settings.Component | None, typer.Argument(help="The component to check. Default: all of them.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes of each component, as for `serve`.")] = 1,
    offline: Annotated[bool, typer.Option("--offline", help="Contact neither identity provider nor database.")] = False,
) -> None:
    """List every wrong, missing or unknown setting; if all are right, print `ok` and exit with status 0.

    If an identity provider is configured, also fetch its keys: without them Core and the console start, but sign-in
    fails. With SOUNDMARK_DATABASE_OPTIONS=false, also ask the databases for the settings that their roles need. This
    command is for components that run separately; `soundmark up` needs no settings.
    """
    chosen = settings.COMPONENTS if component is None else {component: settings.COMPONENTS[component]}
    faults: dict[str, None] = {}  # Each fault once, in order: components share settings.
    alone: list[str] = []
    people: settings.CoreSettings | settings.ConsoleSettings | None = None  # Both read the same settings of people.
    databases: dict[str, _Pooled] = {}
    for name, model in chosen.items():
        try:
            given = settings.read(model, os.environ)
        except SettingsInvalid as invalid:
            faults.update(dict.fromkeys(invalid.faults))
        else:
            alone += [name] if settings.counts_limits_alone(given, workers) else []
            people = given if isinstance(given, settings.CoreSettings | settings.ConsoleSettings) else people
            databases |= _find_pooled(given)
    for fault in faults:
        typer.echo(fault, err=True)
    if faults:
        raise Refused(f"{len(faults)} setting{'s are' if len(faults) > 1 else ' is'} wrong or missing")
    if alone:
        typer.echo(_LIMITS_ALONE.format(components=" and ".join(alone)), err=True)
    if people is not None and people.oidc_issuer is not None and not offline:
        _check_issuer(people.oidc_issuer, people.extra_ca_file)
    if not offline:
        for database, pooled in databases.items():
            _check_sessions(database, pooled)
    typer.echo("ok")


def _find_pooled(given: settings.ServedSettings) -> dict[str, _Pooled]:
    """Return the database whose sessions get no options from us, by its component's name."""
    match given:
        case settings.CoreSettings(database_options=False):
            return {"Core": (given.core_database_url, SessionOptions(given.synchronous_commit, sends_startup=False))}
        case settings.AudienceSettings(database_options=False):
            url = given.audience_database_url
            return {"Audience": (url, SessionOptions(given.synchronous_commit, sends_startup=False))}
        case _:
            return {}


def _check_sessions(name: str, pooled: _Pooled) -> None:
    """Ask a database for the settings of our sessions.

    Raises: Refused, after the statements that make them.
    """
    try:
        missing = asyncio.run(find_missing_settings(*pooled))
    except CannotConnect as refused:
        raise Refused(f"{name}'s database {refused.reason}") from None
    for statement in missing:
        typer.echo(statement, err=True)
    if missing:
        raise Refused(
            f"the sessions of {name}'s database lack settings: run these statements, then reload the pooler's sessions"
        )


def _check_issuer(issuer: str, extra_ca_file: Path | None) -> None:
    """Fetch the identity provider's keys.

    Raises: Refused, saying what is wrong with its response.
    """
    try:
        asyncio.run(check_issuer(issuer, extra_ca_file=extra_ca_file))
    except NamesAnotherIssuer as error:
        raise Refused(
            f"SOUNDMARK_OIDC_ISSUER is {issuer}, but the discovery document there names "
            f"{error.named or 'no issuer'}: the two must be identical"
        ) from None
    except FetchFailed as error:
        raise Refused(
            f"SOUNDMARK_OIDC_ISSUER is {issuer}, but no keys can be fetched from that identity provider: "
            f"{_REASONS.get(error.reason, error.reason)}"
        ) from None
