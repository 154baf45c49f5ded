"""The output of secrets that the service shows once: a file that only its owner can read, or standard output."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from soundmark_sdk.client import Client
from soundmark_sdk.client.records import Record

from soundmark.cli import Refused
from soundmark.cli.api import open_client, show_json, show_made
from soundmark.cli.intents import printable
from soundmark.cli.options import OrganizationCall, ProjectCall

SecretFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-file", metavar="FILE", help="Write the secret to this file, mode 0600, instead of printing it."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


@dataclass(frozen=True, slots=True)
class SecretOutput:
    """The options that say where a secret goes."""

    secret_file: SecretFile = None
    force: Force = False


_Made = TypeVar("_Made", bound=Record)


def make_with_secret(
    call: OrganizationCall | ProjectCall,
    make: Callable[[Client], _Made],
    headings: Iterable[str],
    row: Callable[[_Made], Sequence[Any]],
    *,
    output: SecretOutput,
    quiet: bool = False,
    member: str = "secret",
) -> None:
    """Call `make`, whose answer holds a secret that the service shows once, in `member`, and print the answer.

    A secret that is written to a file is not printed.

    Raises: as `secret_sink` and `open_client`.
    """
    project = call.project if isinstance(call, ProjectCall) else None
    with (
        secret_sink(output, quiet=quiet) as keep,
        open_client(call.connection, call.organization, project) as client,
    ):
        made = make(client)
        keep(made.document[member])
    file = output.secret_file
    if call.as_json and file is not None and not quiet:
        show_json({name: value for name, value in made.document.items() if name != member})
        return
    show_made(made, headings, row(made), as_json=call.as_json, quiet=quiet)
    if not (quiet or call.as_json):
        typer.echo(printable(f"secret, in {file}") if file else f"secret, shown only once: {made.document[member]}")


@contextmanager
def secret_sink(output: SecretOutput, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Yield a function that saves a secret in its file, on the disk when it returns; without a file it saves nothing.

    Call the service inside the block only: a path that cannot be written to is refused first, because a secret that is
    created but not saved is lost.

    Raises: Refused; typer.BadParameter if only an id is printed, `quiet`, and the secret would be lost.
    """
    path = output.secret_file
    if path is None:
        if quiet:
            raise typer.BadParameter("--quiet does not print the secret; add --secret-file")
        yield lambda _: None
        return
    check_free(path, force=output.force)
    scratch = path.with_name(f".{path.name}.part")
    try:
        with suppress(FileNotFoundError):
            scratch.unlink()
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:

        def keep(secret: str) -> None:
            try:
                file.write(f"{secret}\n")
                file.flush()
                os.fsync(file.fileno())
                scratch.replace(path)
            except OSError as error:
                reason = f"{path} cannot be written: {error.strerror}; the secret is lost, so rotate it"
                raise Refused(reason) from None

        try:
            yield keep
        finally:
            with suppress(OSError):
                scratch.unlink()


def check_free(path: Path, *, force: bool) -> None:
    """Refuse a path in no folder, and a file that would be overwritten, unless `force` is true.

    Raises: Refused.
    """
    if not path.parent.is_dir():
        raise Refused(f"{path} cannot be written: there is no folder {path.parent}")
    if not path.name or path.is_dir():
        raise Refused(f"{path} cannot be written: it is a directory")
    if path.exists() and not path.is_file():
        raise Refused(f"{path} cannot be written: it is not a regular file")
    if not force and (path.exists() or path.is_symlink()):
        raise Refused(f"{path} already exists; --force overwrites it")
