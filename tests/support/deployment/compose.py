"""The services of deploy/compose as plain processes: the same commands and settings, on ports of this machine."""

import contextlib
import graphlib
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2
import yaml

from soundmark.kit.http.server.sockets import reserve_port
from support.deployment.commands import DEPLOY
from support.processes.up_process import SOUNDMARK, clean_environ, status_of, until

FOLDER: Final = DEPLOY / "compose"
READY_S: Final = 60
_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")
_METRICS: Final = ("SOUNDMARK_METRICS_PORT", "SOUNDMARK_JOBS_METRICS_PORT")


def make_secrets() -> dict[str, str]:
    """Return what `make-env` prints."""
    printed = subprocess.run(["sh", str(FOLDER / "make-env")], check=True, capture_output=True, text=True).stdout
    return dict(line.split("=", 1) for line in printed.splitlines())


def read_compose(variables: Mapping[str, str]) -> Any:
    """Return the compose file with its variables filled in, as `docker compose config` does it."""
    return _fill(yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8")), variables)


def _fill(value: Any, variables: Mapping[str, str]) -> Any:
    def look_up(found: re.Match[str]) -> str:
        name, kind, default = found.groups()
        given = variables.get(name, "")
        assert given or kind == "-", f"{name} is required"
        return given or default

    match value:
        case str():
            return _VARIABLE.sub(look_up, value)
        case list():
            return [_fill(each, variables) for each in value]
        case dict():
            return {name: _fill(each, variables) for name, each in value.items()}
        case _:
            return value


def in_order(services: Mapping[str, Any]) -> list[str]:
    """Return the services in an order in which each comes after those that it depends on."""
    graph = {name: list(service.get("depends_on", {})) for name, service in services.items()}
    return list(graphlib.TopologicalSorter(graph).static_order())


def is_ours(service: Mapping[str, Any]) -> bool:
    return "soundmark" in service["image"]


@dataclass
class Deployment:
    """The processes that run. `addresses` says where what the services call `name:port` is on this machine."""

    folder: Path
    services: Mapping[str, Any]
    addresses: dict[str, str]
    metrics_ports: dict[str, int] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    # Bound and never listened on, so that nobody else gets the ports.
    _held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def hold_ports(self) -> None:
        """Find an address for each of ours that listens."""
        for name, service in self.services.items():
            if is_ours(service) and (port := port_of(service)):
                self.addresses[f"{name}:{port}"] = f"127.0.0.1:{self._hold_port()}"

    def start_all(self) -> None:
        """Start what is ours in the order of the file; migrations end before what depends on them begins."""
        for name in in_order(self.services):
            if is_ours(self.services[name]):
                self._start(name)
        for name in self.processes:
            if port := port_of(self.services[name]):
                self._wait_until_ready(name, self.addresses[f"{name}:{port}"])

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text("utf-8")

    def scrape(self, name: str) -> str:
        """Return the metrics of a service."""
        return httpx2.get(f"http://127.0.0.1:{self.metrics_ports[name]}/metrics", trust_env=False).text

    def stop(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(READY_S)
            finally:
                process.kill()
        self._held.close()

    def _start(self, name: str) -> None:
        service = self.services[name]
        command = [str(part) for part in service["command"]]
        environ = {key: self._here(str(value)) for key, value in service["environment"].items()}
        if port := port_of(service):
            command[command.index("--host") + 1] = "127.0.0.1"
            command[command.index("--port") + 1] = self.addresses[f"{name}:{port}"].rpartition(":")[2]
        environ.update(dict.fromkeys(environ.keys() & {"SOUNDMARK_METRICS_HOST"}, "127.0.0.1"))
        for key in environ.keys() & set(_METRICS):
            self.metrics_ports[name] = self._hold_port() if port else _find_free_port()
            environ[key] = str(self.metrics_ports[name])
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen([*SOUNDMARK, *command], env=clean_environ(environ), stdout=log, stderr=log)
        if command[0] == "migrate":
            assert process.wait(READY_S) == 0, self.log(name)
        else:
            self.processes[name] = process

    def _here(self, value: str) -> str:
        for there, here in self.addresses.items():
            value = re.sub(rf"(?<=[/@]){re.escape(there)}\b", here, value)
        return value

    def _wait_until_ready(self, name: str, address: str) -> None:
        def is_ready() -> bool:
            assert self.processes[name].poll() is None, self.log(name)
            return status_of(f"http://{address}/readyz") == 200

        until(is_ready, READY_S)

    def _hold_port(self) -> int:
        return int(self._held.enter_context(reserve_port("127.0.0.1", 0)).getsockname()[1])


def port_of(service: Mapping[str, Any]) -> int | None:
    """Return the port that a service listens on in its container."""
    command = service["command"]
    return int(command[command.index("--port") + 1]) if "--port" in command else None


def _find_free_port() -> int:
    """Return a port for a process that would not share it with ours."""
    with reserve_port("127.0.0.1", 0) as listening:
        return int(listening.getsockname()[1])
