"""The image that `make image` built: its processes run in its root alone, as its user, who owns nothing in it.

Run by `make test-deploy`; as root, because it changes the root folder of processes.
"""

import contextlib
import gzip
import io
import json
import os
import stat
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import psutil
import pytest
from support.processes.up_process import until

from soundmark.embedded.throwaway import throwaway_cluster
from soundmark.kit.http.server.sockets import reserve_port

ROOT: Final = Path(__file__).parents[2]
LAYOUT: Final = ROOT / "dist" / "image"
MASTER_KEY: Final = "A" * 43
CPU_S_MAX: Final = 2
SIZE_MAX: Final = 200_000_000


def read_blob(digest: str) -> bytes:
    return (LAYOUT / "blobs" / "sha256" / digest.removeprefix("sha256:")).read_bytes()


@pytest.fixture(scope="module")
def manifest() -> Any:
    (described,) = json.loads((LAYOUT / "index.json").read_text("utf-8"))["manifests"]
    return json.loads(read_blob(described["digest"]))


@pytest.fixture(scope="module")
def config(manifest: Any) -> Any:
    return json.loads(read_blob(manifest["config"]["digest"]))["config"]


@pytest.fixture(scope="module")
def root(manifest: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's root folder, with what a runtime of containers adds: devices."""
    assert os.geteuid() == 0, "run `make test-deploy` as root"
    folder = tmp_path_factory.mktemp("root")
    for layer in manifest["layers"]:
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(read_blob(layer["digest"])))) as tar:
            tar.extractall(folder, filter="fully_trusted")  # noqa: S202 - we have just made it
    null = folder / "dev" / "null"
    os.mknod(null, stat.S_IFCHR, os.makedev(1, 3))
    null.chmod(stat.S_IMODE(Path("/dev/null").stat().st_mode))
    folder.chmod(0o755)
    return folder


def command_in(root: Path, config: Any, *arguments: str) -> list[str]:
    user = f"--userspec={config['User']}"
    return ["/usr/sbin/chroot", user, str(root), *config["Entrypoint"], *arguments]


def environ_of(config: Any, **settings: str) -> dict[str, str]:
    given = dict(variable.split("=", 1) for variable in config["Env"])
    return given | {f"SOUNDMARK_{name}": value for name, value in settings.items()}


def run(root: Path, config: Any, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    command = command_in(root, config, *arguments)
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env=environ_of(config, **settings), timeout=100
    )


@contextlib.contextmanager
def serving(root: Path, config: Any, component: str, **settings: str) -> Iterator[tuple[psutil.Process, str]]:
    with reserve_port("127.0.0.1", 0) as held:
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        command = command_in(root, config, "serve", component, "--port", url.rpartition(":")[2])
        with subprocess.Popen(command, env=environ_of(config, **settings)) as process:
            try:
                yield psutil.Process(process.pid), url
            finally:
                process.terminate()
                assert process.wait(30) == 0


def is_ready(url: str) -> bool:
    with contextlib.suppress(httpx2.TransportError):
        return httpx2.get(f"{url}/readyz", trust_env=False).status_code == 200
    return False


def test_the_image_is_small(manifest: Any) -> None:
    assert sum(len(gzip.decompress(read_blob(layer["digest"]))) for layer in manifest["layers"]) <= SIZE_MAX


def test_it_runs_as_a_user_without_rights_and_stops_at_sigterm(config: Any, root: Path) -> None:
    assert (config["User"], config["StopSignal"]) == ("10001:10001", "SIGTERM")
    assert not [path for path in (root / "usr" / "bin").iterdir() if path.name not in {"python3.11", "soundmark"}]
    special = [path for path in root.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o6000]
    assert special == []
    writable = {path for path in root.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o002}
    assert writable == {root / "tmp", root / "dev" / "null"}


def test_the_command_answers(root: Path, config: Any) -> None:
    done = run(root, config, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "serve" in done.stdout


def test_one_component_is_ready_after_two_seconds_of_processor_time(root: Path, config: Any) -> None:
    with serving(root, config, "audio", AUDIO_CREDENTIAL="a-credential-of-audio") as (process, url):
        until(lambda: is_ready(url), 100)
        spent = process.cpu_times()
        assert process.uids().real == 10001
        print(f"audio: {spent.user + spent.system:.2f} s of processor time until it was ready")
        assert spent.user + spent.system <= CPU_S_MAX


def test_core_migrates_and_serves_on_a_postgresql_outside(root: Path, config: Any) -> None:
    with throwaway_cluster() as cluster:
        url = cluster.create_role_and_database("soundmark_core").reveal()
        migrated = run(root, config, "migrate", "core", CORE_DATABASE_URL=url)
        assert migrated.returncode == 0, migrated.stderr
        settings = {
            "CORE_DATABASE_URL": url,
            "BASE_URL": "https://soundmark.example.org",
            "MASTER_KEY": MASTER_KEY,
            "AUDIO_URL": "http://127.0.0.1:9",
            "AUDIO_CREDENTIAL": "a-credential-of-audio",
            "AUDIENCE_URL": "http://127.0.0.1:9",
            "AUDIENCE_CREDENTIAL": "a-credential-of-audience",
        }
        with serving(root, config, "core", **settings) as (process, address):
            until(lambda: answers_keys(address), 100)
            spent = process.cpu_times()
            print(f"core: {spent.user + spent.system:.2f} s of processor time until it answered")
            assert spent.user + spent.system <= CPU_S_MAX


def answers_keys(url: str) -> bool:
    with contextlib.suppress(httpx2.TransportError):
        answer = httpx2.get(f"{url}/v1/keys", trust_env=False)
        return answer.status_code == 200 and bool(answer.json()["keys"])
    return False


def test_python_finds_time_zones_certificates_and_names(root: Path, config: Any) -> None:
    program = (
        "import ssl, zoneinfo, socket; zoneinfo.ZoneInfo('Africa/Tunis');"
        "print(len(ssl.create_default_context().get_ca_certs()), socket.getservbyname('https'))"
    )
    command = [
        "/usr/sbin/chroot",
        f"--userspec={config['User']}",
        str(root),
        "/usr/bin/python3.11",
        "-I",
        "-c",
        program,
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environ_of(config), timeout=100)
    authorities, port = done.stdout.split()
    assert int(authorities) > 100
    assert port == "443"


def test_the_lists_beside_it_are_those_in_it(root: Path) -> None:
    bill = root / "usr" / "share" / "doc" / "soundmark" / "sbom.cdx.json"
    assert bill.read_bytes() == (ROOT / "dist" / "image.cdx.json").read_bytes()
    names = {
        component["name"].lower().replace("_", "-") for component in json.loads(bill.read_text("utf-8"))["components"]
    }
    locked = (ROOT / "requirements" / "runtime.txt").read_text("utf-8")
    expected = {line.partition("==")[0] for line in locked.splitlines() if "==" in line and ";" not in line}
    assert expected | {"soundmark", "soundmark-sdk", "libc6", "python3.11-minimal"} <= names
    assert len(list((root / "var" / "lib" / "dpkg" / "status.d").iterdir())) == len(
        (ROOT / "deploy" / "image" / "packages.txt").read_text("utf-8").split()
    )
