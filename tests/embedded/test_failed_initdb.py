"""What is said when a cluster cannot be created."""

from pathlib import Path

import pytest

from soundmark.embedded.postgres import Cluster, ClusterFailed
from soundmark.kit.crypto.entropy import SystemEntropy

# As PostgreSQL 18 does on a full disk.
_PROGRAM = """#!/bin/sh
[ "$*" = --version ] && echo "postgres (PostgreSQL) 18.4" && exit
echo 'performing post-bootstrap initialization ... 2026-11-28 UTC [9] FATAL:  could not write to file "base/4/1255"'
echo 'child process exited with exit code 1'
echo 'initdb: removing data directory "/data"'
exit 1
"""


def test_the_reason_is_told_and_not_how_initdb_tidies_up(tmp_path: Path) -> None:
    for name in ("postgres", "initdb"):
        (tmp_path / name).write_text(_PROGRAM)
        (tmp_path / name).chmod(0o755)
    with pytest.raises(ClusterFailed) as failed:
        Cluster(tmp_path, None, tmp_path).prepare(SystemEntropy())
    assert str(failed.value) == f'PostgreSQL\'s initdb failed in {tmp_path}: could not write to file "base/4/1255"'
