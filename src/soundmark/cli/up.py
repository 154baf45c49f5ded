"""`soundmark up`: everything on this machine."""

import asyncio
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.status import Status

from soundmark.cli import Refused
from soundmark.embedded.cluster_location import Home
from soundmark.embedded.installation import where_installed
from soundmark.kit import log
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.server.sockets import PortReserved, PortTaken
from soundmark.kit.postgres.releases import KNOWN_GOOD, find_warning, major_of, write_version
from soundmark.kit.settings import PREFIX
from soundmark.sandbox.options import ADDRESSES, choose_credentials, defaults_for_core
from soundmark.supervision.data_dir import UP_FILE
from soundmark.supervision.plan import CELLS_MAX, Options, Plan, SandboxPlan
from soundmark.supervision.sign_in_link import make_sign_in_link
from soundmark.supervision.up import Postgres, Refusal, Reports, run

app = typer.Typer(add_completion=False)

_CONSOLE_URL: Final = f"{PREFIX}CONSOLE_URL"
_IN_BOLD: Final = ("Public API", "Console")

SLOW_S: Final = 5


@app.command()
def up(
    data_dir: Annotated[Path, typer.Option(help="The folder for all data and secrets.")] = Path(".soundmark"),
    host: Annotated[str, typer.Option(help="The IP address that the public API listens on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port of the public API; 0 picks a free one.")] = 8080,
    console_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="The port of the console. Default: that of the last time, or the first free one from 8083 on.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="The number of HTTP processes of each component.")] = 1,
    cells: Annotated[
        int,
        typer.Option(
            min=1, max=CELLS_MAX, help="The number of Audiences that share the measuring, each with its own database."
        ),
    ] = 1,
    demo: Annotated[bool, typer.Option("--demo", help="Run `soundmark demo` once, then keep serving.")] = False,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Also run `soundmark sandbox`, and let Core use its stand-ins.")
    ] = False,
    serve_as_root: Annotated[
        bool,
        typer.Option(
            "--serve-as-root",
            help="As root, serve as root if the user soundmark cannot read the installation, instead of refusing.",
        ),
    ] = False,
    reload: Annotated[bool, typer.Option("--reload", help="Restart a process when its source code changes.")] = False,
) -> None:
    """Run everything on this machine, with a PostgreSQL of its own, until Ctrl-C or SIGTERM.

    Each part is a separate process, which is restarted if it dies. The data dir survives restarts and crashes. It
    contains every secret and, while everything runs, the address of each part in `up.json`.
    """
    console = Console(soft_wrap=True)
    progress = console.status("Starting ...")
    options = Options(
        data_dir.absolute(),
        host,
        port,
        workers,
        sandbox=_plan_sandbox() if sandbox else None,
        console_port=console_port,
        serve_as_root=serve_as_root,
        cells_count=cells,
    )

    steps = SlowSteps(console, progress)

    def ready(plan: Plan, home: Home, postgres: Postgres) -> None:
        steps.end()
        progress.stop()
        _tell_ready(console, plan, home, postgres)

    def stopping() -> None:
        steps.end()
        progress.stop()
        console.print("Stopping, after finishing the open requests.")

    reports = Reports(
        doing=steps.begin,
        ready=ready,
        stopping=stopping,
        demo_failed=lambda status: console.print(f"[red]The demo failed (status {status}).[/] Still serving."),
    )
    log.configure(level="info", log_format=None, component="up")
    try:
        with progress:
            asyncio.run(run(options, reports, demo=demo, reload=reload))
    except (PortReserved, PortTaken) as refusal:
        raise Refused(f"{refusal}; choose another port with --port (make up PORT=8181)") from None
    except Refusal as refusal:
        raise Refused(str(refusal)) from None


class SlowSteps:
    """What `up` is doing, in one changing line. A step that takes long leaves a line, with or without a terminal."""

    def __init__(self, console: Console, progress: Status) -> None:
        self._console = console
        self._progress = progress
        self._slow: asyncio.TimerHandle | None = None

    def begin(self, what: str) -> None:
        """Say what begins now; it ends the step before."""
        self.end()
        self._progress.update(f"{what} ...")
        self._slow = asyncio.get_running_loop().call_later(SLOW_S, self._console.print, f"{what} ...")

    def end(self) -> None:
        """End the last step."""
        if self._slow is not None:
            self._slow.cancel()


def _plan_sandbox() -> SandboxPlan:
    credentials = choose_credentials({}, SystemEntropy())
    return SandboxPlan(ADDRESSES, credentials, defaults_for_core(entity_id=1, mailbox_id=1))


def _tell_ready(console: Console, plan: Plan, home: Home, postgres: Postgres) -> None:
    lines = {
        "Public API": plan.address("core"),
        "Console": plan.address("console"),
        "Guide": f"{plan.address('console')}/guide",
        "Sign in": _say_how_to_sign_in(plan),
        "Private": f"{_list_audiences(plan)}, {plan.address('audio')} (Audio)",
        "Operator token": f"in {plan.options.data_dir / UP_FILE}",
    }
    if plan.sandbox_url is not None:
        lines["Sandbox"] = f"{plan.sandbox_url} (stand-ins of the providers, the accounting system and the desk)"
    if home.elsewhere:
        lines["Database"] = f"in {home.path}, because the user {_name(home)} cannot reach the data dir"
    if home.user is not None:
        lines["Runs as"] = _say_who_serves(home.user.name, plan)
    if postgres.is_bundled:
        lines["PostgreSQL"] = _describe_included(postgres.version)
    elif (warning := find_warning(postgres.version)) is not None:
        lines["Warning"] = warning
    console.print("[bold green]Soundmark is ready.[/] Ctrl-C stops it.")
    for name, text in lines.items():
        style = "bold" if name in _IN_BOLD else None
        # A path or an IPv6 address may have brackets, which are no markup.
        console.print(f"  {name:<16}{text}", style=style, markup=False, highlight=False)


def _describe_included(version: int) -> str:
    """Return the release of the included PostgreSQL, which follows the security releases late, for who tries it."""
    fixed = KNOWN_GOOD[major_of(version)]
    lacks = f", without the security fixes of {write_version(fixed)}" if version < fixed else ""
    return f"{write_version(version)}, included for trying only{lacks}"


def _list_audiences(plan: Plan) -> str:
    cells = plan.cells()
    if len(cells) == 1:
        return f"{plan.address('audience')} (Audience)"
    return ", ".join(f"{plan.address(unit)} (Audience, cell {name})" for name, unit in cells.items())


def _say_how_to_sign_in(plan: Plan) -> str:
    if plan.tickets is not None:
        link = make_sign_in_link(plan.address("console"), plan.tickets, SystemClock(), SystemEntropy())
        return f"{link}   (works once, within an hour)"
    if "OIDC_ISSUER" in plan.given:
        return f"with {plan.given['OIDC_ISSUER']}"
    return f"not possible without an identity provider: a link works only on a loopback address, without {_CONSOLE_URL}"


def _say_who_serves(name: str, plan: Plan) -> str:
    if plan.user is not None:
        return f"the user {name}"
    return f"root (PostgreSQL: {name}), because the user {name} cannot read the installation {where_installed()}"


def _name(home: Home) -> str:
    assert home.user is not None, "only root puts a cluster elsewhere"
    return home.user.name
