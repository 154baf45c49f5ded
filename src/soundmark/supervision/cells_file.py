"""The file of cells in a data dir: what Core reads, and how many cells the data dir has."""

import json
from pathlib import Path

from soundmark.embedded.cluster_location import find_home, place_beside_cluster
from soundmark.operating_system.files import write_private
from soundmark.operating_system.os_user import OsUser


class CellsMissing(Exception):
    """The data dir has more cells than are to run; the message is one line for the user."""


def find_cells_file(data_dir: Path) -> Path:
    """Return the path of the file, which exists if there are several cells."""
    return place_beside_cluster(find_home(data_dir), data_dir, "cells.json")


def require_all_cells(file: Path, cells_count: int) -> None:
    """Refuse to run fewer cells than the data dir has, each of which may have organisations.

    Raises: CellsMissing.
    """
    if file.exists():
        has_count = len(json.loads(file.read_text(encoding="utf-8")))
        if cells_count < has_count:
            raise CellsMissing(f"the data dir has {has_count} cells: start it with --cells {has_count}")


def write_cells(file: Path, cells: list[dict[str, object]], user: OsUser | None = None) -> None:
    """Write the cells for their owner alone, because each has a credential."""
    write_private(file, json.dumps(cells, indent=2) + "\n", user)
