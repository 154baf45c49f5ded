"""One-time links with which the operator signs in to the console of `soundmark up`."""

from pathlib import Path
from typing import Final

from soundmark.embedded.cluster_location import Home
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.operating_system.one_time_tickets import issue_ticket

_FOLDER: Final = "sign-in-tickets"


def tickets_folder(home: Home, data_dir: Path) -> Path:
    """Return the folder of the tickets: in the data dir, or beside a cluster that is elsewhere, for the same reason."""
    return home.path.with_name(f"{home.path.name}-{_FOLDER}") if home.elsewhere else data_dir / _FOLDER


def make_sign_in_link(console_url: str, folder: Path, clock: Clock, entropy: Entropy) -> str:
    """Return a new link, which works once, within an hour.

    Raises: OSError if the folder is missing or cannot be written to.
    """
    return f"{console_url}/sign-in/link?ticket={issue_ticket(folder, clock, entropy)}"
