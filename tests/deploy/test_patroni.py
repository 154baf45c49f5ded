"""The configuration in deploy/patroni: Patroni accepts it, and it acknowledges nothing that one machine alone has."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from support.deployment.commands import DEPLOY
from support.deployment.haproxy import listen, port_of

from soundmark.embedded.installation import find_programs

CONFIGURATION: Final = (DEPLOY / "patroni" / "patroni.yaml").read_text("utf-8")
MACHINES: Final = ["10.77.0.11", "10.77.0.12", "10.77.0.13"]


def test_patroni_accepts_the_configuration(tmp_path: Path) -> None:
    """It also asks whether its ports are free, etcd can be reached, and PostgreSQL is installed."""
    with listen() as one, listen() as another:
        ports = port_of(one), port_of(another)
    with listen() as etcd:
        text = re.sub(r"10\.77\.0\.\d+:2379", f"127.0.0.1:{port_of(etcd)}", CONFIGURATION)
        for name, port in zip((8008, 5432), ports, strict=True):
            text = re.sub(rf"(?<= listen: ){MACHINES[0]}:{name}", f"127.0.0.1:{port}", text)
        text = re.sub(r"(?<=data_dir: ).*", str(tmp_path / "data"), text)
        text = re.sub(r"(?<=bin_dir: ).*", str(find_programs(None)), text)
        file = tmp_path / "patroni.yaml"
        file.write_text(text, "utf-8")
        command = [str(Path(sys.executable).with_name("patroni")), "--validate-config", str(file)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip(), done.stderr.strip()) == (0, "", "")


def parsed() -> Any:
    return yaml.safe_load(CONFIGURATION)


def test_a_commit_is_on_two_machines_before_it_is_acknowledged() -> None:
    given = parsed()["bootstrap"]["dcs"]
    assert (given["synchronous_mode"], given["synchronous_mode_strict"], given["synchronous_node_count"]) == (
        True,
        True,
        1,
    )
    assert given["postgresql"]["parameters"]["synchronous_commit"] == "on"
    assert parsed()["watchdog"]["mode"] == "required"


def test_a_failover_ends_before_the_watchdog_would_reset_the_new_primary() -> None:
    """Patroni's own rule: `ttl` is at least `loop_wait` and twice `retry_timeout`."""
    given = parsed()["bootstrap"]["dcs"]
    assert given["ttl"] >= given["loop_wait"] + 2 * given["retry_timeout"]
    assert given["ttl"] > parsed()["watchdog"]["safety_margin"] + given["loop_wait"]


def test_it_holds_no_password() -> None:
    assert "password:" not in CONFIGURATION


@pytest.mark.parametrize("file", ["haproxy/database.cfg", "haproxy/servers.cfg"])
def test_the_proxies_name_the_same_machines(file: str) -> None:
    text = (DEPLOY / file).read_text("utf-8")
    assert sorted(set(re.findall(r"10\.77\.0\.\d+", text))) == MACHINES
    assert sorted(set(re.findall(r"10\.77\.0\.\d+(?=:2379)", CONFIGURATION))) == MACHINES


def test_backups_and_patroni_mean_the_same_cluster() -> None:
    backups = (DEPLOY / "pgbackrest" / "pgbackrest.conf").read_text("utf-8")
    assert parsed()["postgresql"]["data_dir"] in re.findall(r"^pg1-path=(.*)$", backups, re.MULTILINE)
    stanza = re.findall(r"^\[(\w+)\]$", backups, re.MULTILINE)[-1]
    units = "".join(path.read_text("utf-8") for path in (DEPLOY / "pgbackrest").glob("*.service"))
    assert set(re.findall(r"--stanza=(\w+)", CONFIGURATION + units)) == {stanza}
