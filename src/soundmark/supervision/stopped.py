"""The databases of a data dir while no `soundmark up` runs on it."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from soundmark import settings
from soundmark.embedded.cluster_location import find_home, make_home
from soundmark.embedded.installation import find_chosen_programs, find_programs, version_of
from soundmark.embedded.postgres import Cluster
from soundmark.kit.crypto.secret import Secret
from soundmark.supervision import data_dir
from soundmark.supervision.plan import Unit


@contextlib.contextmanager
def run_stopped_databases(path: Path, names: Mapping[Unit, str]) -> Iterator[dict[Unit, Secret]]:
    """Run only the PostgreSQL of a data dir during the block, and yield the URLs of the databases with these names.

    The data dir, the cluster and the databases are created if missing. Nobody else can run an `up` there in the
    meantime.

    Raises: data_dir.DataDirRefused, also if an `up` runs there; NoPostgres; ClusterFailed.
    """
    data_dir.make_data_dir(path)
    with data_dir.take_turn(path):
        home = find_home(path)
        chosen = settings.read(settings.UpSettings, os.environ).postgres_bin
        folder = find_programs(home.user) if chosen is None else find_chosen_programs(chosen, home.user)
        cluster = Cluster(home.path, home.user, folder)
        cluster.require_major(version_of(folder, home.user))
        make_home(home, path)
        running = cluster.start()
        try:
            yield {unit: running.create_role_and_database(name) for unit, name in names.items()}
        finally:
            running.stop()
