"""The `soundmark` command: one module for each command or group, and no product logic.

To add a command, write a module with a `typer.Typer(add_completion=False)` in it, by custom named `app`, and add a line
to `_COMMANDS`: the command's name, `module:attribute`, and the sentence that `soundmark --help` shows.

- A Typer with one `@app.command()` and no callback is a single command (`soundmark up`).
- A Typer with a callback, or with several commands, is a group of commands (`soundmark keys list`).

The options that commands share are in `options`; its `command(app)` takes records of them, such as `Connection`.

A module is imported when its command is called, never for `--help`, so that a serving process loads only the code it
needs. A command that is refused, or fails for a reason that the user can act on, raises
`Refused("one clear line")`: exit status 1. Typer refuses wrong usage: exit status 2.
"""

import importlib
import importlib.metadata
import inspect
import re
import signal
import sys
from typing import Annotated, Any, Final, NoReturn

import typer
import typer.core
import typer.main

from soundmark.kit.garbage_collection import collect_seldom
from soundmark.kit.optional_imports import UNUSED, hide_optional

_COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "up": ("soundmark.cli.up:app", "Run everything on this machine, with a PostgreSQL of its own."),
    "demo": ("soundmark.cli.demo:app", "Show the main job against a running service, step by step."),
    "hear": ("soundmark.cli.hear:app", "Decode a sound, resolve and verify it, show the intent."),
    "play": ("soundmark.cli.play:app", "Play Codes at a venue: through a sound card, or into a pipe or file."),
    "mix": ("soundmark.cli.mix:app", "Mix a Code into a programme, and certify how well it is heard."),
    "scan": ("soundmark.cli.scan:app", "Hear a finished master, and certify each repetition of a Code."),
    "codes": ("soundmark.cli.codes:app", "Issue, list, show, revoke and render Codes."),
    "campaigns": ("soundmark.cli.campaigns:app", "Create, list, change, archive, stop and summarise campaigns."),
    "organizations": ("soundmark.cli.organizations:app", "Create, list, rename, export and delete organisations."),
    "projects": ("soundmark.cli.projects:app", "Create, list, rename, export and delete projects."),
    "api-keys": ("soundmark.cli.api_keys:app", "Create, list and revoke API keys, and rotate their secrets."),
    "members": ("soundmark.cli.members:app", "List, change, invite and remove the members of an organisation."),
    "integrations": ("soundmark.cli.integrations:app", "Create, list, change and revoke Audience integrations."),
    "webhooks": ("soundmark.cli.webhooks:app", "Create, list, change and test webhook endpoints; listen to events."),
    "billing": ("soundmark.cli.billing:app", "List offers, buy plans, and list subscriptions."),
    "tickets": ("soundmark.cli.tickets:app", "Open, answer, list and show support tickets."),
    "use": ("soundmark.cli.use:app", "Choose the default organisation and project."),
    "console": ("soundmark.cli.console:app", "Print a link that signs in to the console of `soundmark up`."),
    "archive": ("soundmark.cli.archive:app", "Verify an exported archive, with or without the service."),
    "certificate": ("soundmark.cli.certificate:app", "Verify the certificate of a deletion or of a measured Code."),
    "sandbox": ("soundmark.cli.sandbox:app", "Stand in for the payment providers, the accounting system and the desk."),
    "serve": ("soundmark.cli.serve:app", "Serve one component, configured by the environment."),
    "work": ("soundmark.cli.work:app", "Run the background jobs of one component."),
    "migrate": ("soundmark.cli.migrate:app", "Migrate a component's database to the current schema."),
    "backup": ("soundmark.cli.backup:backup", "Back up both databases and their master keys, while everything runs."),
    "restore": ("soundmark.cli.backup:restore", "Restore a backup into two empty databases."),
    "keys": ("soundmark.cli.keys:app", "List, stage, activate, retire and rotate Core's signing keys."),
    "platform": ("soundmark.cli.platform:app", "Show the catalogue, grant entitlements, change the master key."),
    "audience": ("soundmark.cli.audience:app", "Report audiences, and import older counts."),
    "audit": ("soundmark.cli.audit:app", "Verify the audit log of an organisation."),
    "log": ("soundmark.cli.log:app", "Verify, monitor, witness and operate the transparency log."),
    "config": ("soundmark.cli.config:app", "Check the settings in the environment."),
    "openapi": ("soundmark.cli.contract:openapi", "Write the OpenAPI document of the public API."),
    "schemas": ("soundmark.cli.contract:schemas", "Write the JSON Schemas of the formats that programs exchange."),
}

# Commands whose processes run for months, and what they import first, without its parts that they never use.
_LASTING: Final = {"up": ("structlog",), "serve": ("structlog", "uvicorn"), "work": ("structlog",)}


class Refused(Exception):
    """The command was refused or failed; the message is the one line that says so, and holds no secret."""


class _Terminated(SystemExit):
    """SIGTERM came. It is an exit because event loops let nothing else end them."""


# Phrases of the library beneath Typer, and what replaces them.
_LIBRARY_WORDS: Final = (
    (re.compile(r"^Value error, "), ""),
    (re.compile(r"^Input should be "), "must be "),
    (re.compile(r", unable to parse string as an? \w+$"), ""),
)


class _CommandsByName(typer.core.TyperGroup):
    """A group that lists the commands of the table and imports only the one that is called."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        for name, (_, summary) in _COMMANDS.items():
            self.commands[name] = typer.core.TyperCommand(name, help=summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is None:
            return name, command, rest
        loaded = _load(name)
        _prepare_help(loaded, ctx)
        return name, loaded, rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _prepare_help(self, ctx)
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as refused:
            for words, ours in _LIBRARY_WORDS:
                refused.message = words.sub(ours, refused.message)
            raise


def _prepare_help(command: Any, ctx: Any) -> None:
    """Let the help wrap its paragraphs at the terminal's width, and show no type behind a flag.

    The library keeps the line breaks of a docstring after its first paragraph, so every second line would be short.
    `--demo <bool>` would invite people to write `--demo true`.
    """
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    for parameter in command.get_params(ctx):
        if getattr(parameter, "is_bool_flag", False):
            parameter.metavar = ""
    for one in getattr(command, "commands", {}).values():
        _prepare_help(one, ctx)


def _load(name: str) -> Any:
    path, summary = _COMMANDS[name]
    with hide_optional(*UNUSED):
        for library in _LASTING.get(name, ()):
            importlib.import_module(library)
    module, _, attribute = path.partition(":")
    command = typer.main.get_command(getattr(importlib.import_module(module), attribute))
    command.name = name
    command.help = command.help or summary
    return command


_app: Final = typer.Typer(
    cls=_CommandsByName,
    help="Signed, revocable records of an intent, broadcast as sound and verified on the device that hears them.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    # A traceback with local variables would print secrets.
    pretty_exceptions_enable=False,
)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        versions = [f"{name} {importlib.metadata.version(name)}" for name in ("soundmark", "soundmark-sdk")]
        typer.echo(", ".join(versions))
        raise typer.Exit


@_app.callback()
def _soundmark(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Make Typer build a group; the commands are in the table."""


def main() -> None:
    """Run the command that the command line names.

    Exit status: 0 done, 1 refused or failed, 2 wrong usage. A refused command prints the reason in one line on standard
    error, and so does one that cannot use a file or write its output; a component that cannot start writes it to its
    log. SIGTERM ends a command as Ctrl-C does, so that it removes what is unfinished. Either ends `up` with 0.
    """
    collect_seldom()
    is_up = sys.argv[1:2] == ["up"]
    for signum in (signal.SIGTERM, *([signal.SIGINT] if is_up else [])):
        signal.signal(signum, _terminate)
    try:
        _app(prog_name="soundmark")
    except Refused as refused:
        _fail(str(refused))
    except _Terminated:
        if is_up:
            return
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)  # Whoever sent it sees this end, and no failure.
    except OSError as error:
        _fail(f"{error.filename or 'the output'}: {error.strerror or error}")


def _terminate(_signum: int, _frame: object) -> NoReturn:
    raise _Terminated


def _fail(reason: str) -> NoReturn:
    from soundmark.cli.intents import printable  # noqa: PLC0415 - most commands succeed without it

    # A file's name may hold a line end.
    typer.echo(f"soundmark: {printable(reason)}".replace("\n", " "), err=True)
    sys.exit(1)
