"""The keys with which a command verifies a file: from a file, or from a service."""

from pathlib import Path
from typing import Annotated, Final

import typer
from soundmark_sdk import KeySet, ReceiverFailure, read_trusted_keys
from soundmark_sdk.client import Client, ClientFailure

from soundmark.cli import Refused
from soundmark.cli.api import explain_failure
from soundmark.cli.first_contact import FirstContact
from soundmark.cli.intents import printable

KeysFile = Annotated[
    Path | None,
    typer.Option(
        "--keys",
        metavar="FILE",
        help="Verify with the keys in this file: a JWK, a JWK Set, or the answer of /v1/keys/history.",
    ),
]
_ADVICE: Final = "Start it, name another with --base-url, or give the keys with --keys."
# A thousand keys, the most that a key set has, need less.
_BYTES_MAX: Final = 1024 * 1024


def read_keys(keys_file: Path) -> KeySet:
    """Return the keys in a file.

    Raises: Refused.
    """
    try:
        return read_trusted_keys(read_bounded(keys_file, _BYTES_MAX))
    except ReceiverFailure:
        raise Refused(
            f"{keys_file} contains no keys: it must be a JWK, a JWK Set, or the answer of /v1/keys/history"
        ) from None


def fetch_keys(base_url: str) -> KeySet:
    """Return every key that a service ever signed with.

    Raises: Refused.
    """
    try:
        with Client(base_url, None, transport=FirstContact(base_url, _ADVICE)) as client:
            return client.get_key_history()
    except ClientFailure as failure:
        raise Refused(explain_failure(failure)) from None
    except ValueError as error:
        raise Refused(f"{printable(base_url)}: {error}") from None


def check_key_options(keys_file: Path | None, base_url: str | None, data_dir: Path | None = None) -> None:
    """Accept only one source of keys.

    Raises: typer.BadParameter.
    """
    if keys_file is not None and (base_url is not None or data_dir is not None):
        raise typer.BadParameter(f"give either --keys or {'--base-url' if base_url is not None else '--data-dir'}")


def read_bounded(path: Path, bytes_max: int) -> bytes:
    """Return the content of a file, or its first `bytes_max` + 1 bytes.

    Raises: Refused.
    """
    try:
        with path.open("rb") as file:
            return file.read(bytes_max + 1)
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from None
