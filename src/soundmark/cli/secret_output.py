"""Secrets that the service shows once: into a file that only its owner reads, or onto standard output."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from soundmark.cli.errors import Refused

SecretFile = Annotated[
    Path | None,
    typer.Option("--secret-file", metavar="FILE", help="Write the secret there, mode 0600, instead of printing it."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]


@contextmanager
def secret_sink(path: Path | None, *, force: bool) -> Iterator[Callable[[str], None]]:
    """Yield what keeps a secret: in `path`, on the disk when it returns; nowhere where that is None.

    A place that cannot be written to is refused before anything is asked of the service, since a secret that was made
    and not kept is lost.

    Raises: Refused.
    """
    if path is None:
        yield lambda _: None
        return
    check_free(path, force=force)
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
                said = f"{path} cannot be written: {error.strerror}; the secret is lost, so rotate it"
                raise Refused(said) from None

        try:
            yield keep
        finally:
            with suppress(OSError):
                scratch.unlink()


def check_free(path: Path, *, force: bool) -> None:
    """Refuse a file that would be overwritten, unless that is wanted.

    Raises: Refused.
    """
    if not path.name or path.is_dir():
        raise Refused(f"{path} cannot be written: it is a directory")
    if not force and (path.exists() or path.is_symlink()):
        raise Refused(f"{path} is there already; --force replaces it")
