"""`soundmark sandbox`: the stand-ins of the outside systems."""

import os
from typing import Annotated, Final

import typer
from rich.console import Console

from soundmark import settings
from soundmark.cli import Refused
from soundmark.cli.deployment import read_settings
from soundmark.kit import log
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.server.serve import Listen, run
from soundmark.kit.http.server.sockets import CannotListen, reserve_port
from soundmark.kit.settings import PREFIX
from soundmark.sandbox.app import create_app
from soundmark.sandbox.hanging_up import HangingUpConnection
from soundmark.sandbox.options import ADDRESSES, CREDENTIALS, SandboxOptions, choose_credentials, settings_for_core

app = typer.Typer(add_completion=False)

HOST: Final = "127.0.0.1"  # It has no login, so it never listens for others.
_PORT: Final = 8090


@app.command()
def sandbox(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 picks a free one.")] = _PORT,
    quiet: Annotated[bool, typer.Option("--quiet", hidden=True)] = False,
) -> None:
    """Stand in for the card provider, the local provider, the accounting system and the support desk.

    The command prints the settings that Core needs to use it. Credentials come from these settings if they are in the
    environment, and are generated otherwise. Webhooks go to SOUNDMARK_BASE_URL. All data is in memory until Ctrl-C or
    SIGTERM.
    """
    given = read_settings(settings.SandboxSettings)
    log.configure(level=given.log_level, log_format=given.log_format, component="sandbox")
    options = SandboxOptions(
        core_url=given.base_url,
        credentials=choose_credentials({name: getattr(given, name.lower()) for name in CREDENTIALS}, SystemEntropy()),
        accounting_entity_id=given.accounting_entity_id or 1,
        desk_mailbox_id=given.support_desk_mailbox_id or 1,
    )
    try:
        with reserve_port(HOST, port) as held:
            chosen = held.getsockname()[1]
            if not quiet:
                _tell_addresses(f"http://{HOST}:{chosen}", options)
            run(create_app(options), Listen(HOST, chosen), connection_class=HangingUpConnection)
    except CannotListen as refusal:
        raise Refused(f"{refusal}; choose another port with --port") from None


def _tell_addresses(url: str, options: SandboxOptions) -> None:
    """Print the address, and the settings that Core lacks: a credential in the environment is known already."""
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"[bold green]The sandbox is at {url}.[/] Ctrl-C stops it and discards its data.")
    console.print(f"Webhooks go to {options.core_url}. Core uses the sandbox with these settings:\n")
    for name, value in settings_for_core(url, options).items():
        if name in ADDRESSES or not os.environ.get(PREFIX + name):
            console.print(f"export {PREFIX}{name}={value}", markup=False)
    console.print()
