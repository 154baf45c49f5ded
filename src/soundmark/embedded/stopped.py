"""The databases of a data dir on which no `soundmark up` runs."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from soundmark import settings
from soundmark.embedded import data_dir
from soundmark.embedded.installation import chosen_programs, programs, version_of
from soundmark.embedded.placement import find_home, make_home
from soundmark.embedded.plan import DATABASES
from soundmark.embedded.postgres import Cluster
from soundmark.kit.secret import Secret
from soundmark.settings import Component


@contextlib.contextmanager
def stopped_databases(path: Path) -> Iterator[dict[Component, Secret]]:
    """Run the PostgreSQL of a data dir, and nothing else, for as long as the block lasts; return both URLs.

    The data dir, the cluster and the databases are made where they are missing. Nobody else can run an `up` there
    meanwhile.

    Raises: data_dir.DataDirRefused, also while an `up` runs there; NoPostgres; ClusterFailed.
    """
    data_dir.make_data_dir(path)
    with data_dir.take_turn(path):
        home = find_home(path)
        chosen = settings.read(settings.UpSettings, os.environ).postgres_bin
        folder = programs(home.user) if chosen is None else chosen_programs(chosen, home.user)
        cluster = Cluster(home.path, home.user, folder)
        cluster.require_major(version_of(folder, home.user))
        make_home(home, path)
        running = cluster.start()
        try:
            yield {component: running.create_role_and_database(name) for component, name in DATABASES.items()}
        finally:
            running.stop()
