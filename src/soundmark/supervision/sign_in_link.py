"""Folders of the console of `soundmark up`, and the one-time links with which the operator signs in there."""

from pathlib import Path
from typing import Final

from soundmark.embedded.cluster_location import Home, place_beside_cluster
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.operating_system.one_time_tickets import issue_ticket

_TICKETS: Final = "sign-in-tickets"
_STATE: Final = "console-state"


def tickets_folder(home: Home, data_dir: Path) -> Path:
    """Return the folder of the tickets."""
    return place_beside_cluster(home, data_dir, _TICKETS)


def console_state_folder(home: Home, data_dir: Path) -> Path:
    """Return the folder in which the console keeps which sessions have ended."""
    return place_beside_cluster(home, data_dir, _STATE)


def make_sign_in_link(console_url: str, folder: Path, clock: Clock, entropy: Entropy) -> str:
    """Return a new link, which works once, within an hour.

    Raises: OSError if the folder is missing or cannot be written to.
    """
    return f"{console_url}/sign-in/link?ticket={issue_ticket(folder, clock, entropy)}"
