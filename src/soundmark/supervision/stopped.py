"""The databases of a data dir on which no `soundmark up` runs."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from soundmark import settings
from soundmark.embedded.cluster_location import find_home, make_home
from soundmark.embedded.installation import find_chosen_programs, find_programs, version_of
from soundmark.embedded.postgres import Cluster
from soundmark.kit.crypto.secret import Secret
from soundmark.settings import Component
from soundmark.supervision import data_dir
from soundmark.supervision.plan import DATABASES


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
        folder = find_programs(home.user) if chosen is None else find_chosen_programs(chosen, home.user)
        cluster = Cluster(home.path, home.user, folder)
        cluster.require_major(version_of(folder, home.user))
        make_home(home, path)
        running = cluster.start()
        try:
            yield {component: running.create_role_and_database(name) for component, name in DATABASES.items()}
        finally:
            running.stop()
