"""The `soundmark` command: its help, its imports, and its exit statuses."""

import importlib.metadata
import itertools
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import soundmark_sdk
from support.processes.command_server import run_command, running_command_server
from support.processes.up_process import clean_environ

import soundmark as soundmark_package

from .conftest import Done, run_in

COMMANDS = [
    "up",
    "demo",
    "hear",
    "play",
    "mix",
    "scan",
    "codes",
    "campaigns",
    "organizations",
    "projects",
    "api-keys",
    "members",
    "integrations",
    "webhooks",
    "billing",
    "tickets",
    "use",
    "console",
    "archive",
    "certificate",
    "sandbox",
    "serve",
    "work",
    "migrate",
    "backup",
    "restore",
    "keys",
    "platform",
    "audience",
    "audit",
    "log",
    "config",
    "openapi",
    "schemas",
]
# Modules that only their users may load: Core stays small, and help appears at once.
HEAVY = ["matplotlib", "numpy", "sqlalchemy", "alembic", "procrastinate", "psycopg", "fastapi", "pydantic"]
# Loaded once for the help of every command.
LIBRARIES = [
    *HEAVY,
    "httpx2",
    "psutil",
    "pydantic_settings",
    "rich.table",
    "soundmark_sdk.client",
    "structlog",
    "uvicorn",
]


def soundmark(*arguments: str, environ: Mapping[str, str] | None = None) -> Done:
    return run_in(clean_environ({"NO_COLOR": "1", "COLUMNS": "120", **(environ or {})}), *arguments)


def test_help_lists_every_command() -> None:
    done = soundmark("--help")
    assert done.status == 0
    listed = [line.split()[1] for line in done.out.splitlines() if line.startswith("│ ") and line[2] not in " -"]
    assert listed == COMMANDS


@pytest.fixture(scope="module")
def libraries_only() -> Iterator[Path]:
    """A server of commands that has imported every library, which takes long, and nothing of the product."""
    with running_command_server(LIBRARIES) as path:
        yield path


@pytest.mark.xdist_group("command help")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, libraries_only: Path) -> None:
    """In a process that has imported no module of ours that the command needs."""
    environ = clean_environ({"NO_COLOR": "1", "COLUMNS": "120"})
    done = Done(*run_command(libraries_only, [command, "--help"], environ, timeout_s=60))
    assert (done.status, done.err) == (0, "")
    assert f"Usage: soundmark {command}" in done.out
    assert "<bool>" not in done.out


@pytest.mark.parametrize("command", [(), ("codes", "list")], ids=" ".join)
def test_h_shows_help_everywhere_and_flags_as_flags(command: tuple[str, ...]) -> None:
    short, long = soundmark(*command, "-h"), soundmark(*command, "--help")
    assert (short.status, short.err, short.out) == (0, "", long.out)
    assert "<bool>" not in long.out


@pytest.mark.parametrize("command", [("up",), ("platform", "entitle")], ids=" ".join)
def test_help_fills_the_lines_of_a_terminal(command: tuple[str, ...]) -> None:
    """A docstring breaks its lines at another width, and the help at both would leave every second line short."""
    text, _, _ = soundmark(*command, "--help", environ={"COLUMNS": "80"}).out.partition("╭")
    lines = [line.strip() for line in text.splitlines()]
    for line, following in itertools.pairwise(lines):
        if line and following:
            assert len(f"{line} {following.split()[0]}") > 78, line


def test_the_versions_of_both_distributions_are_shown() -> None:
    done = soundmark("--version")
    versions = (importlib.metadata.version("soundmark"), importlib.metadata.version("soundmark-sdk"))
    assert versions == (soundmark_package.__version__, soundmark_sdk.__version__)
    assert (done.status, done.err) == (0, "")
    assert done.out == "soundmark {}, soundmark-sdk {}\n".format(*versions)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("soundmark api", {"api-keys"}),
        ("soundmark integrations r", {"rename", "revoke", "rotate-secret", "replace-core-key"}),
        ("soundmark codes list --st", {"--status"}),
        ("soundmark codes list --status a", {"active"}),
    ],
)
def test_a_shell_completes_commands_options_and_values(typed: str, offered: set[str]) -> None:
    """Also for commands that are loaded only when they are called."""
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_SOUNDMARK_COMPLETE": "complete_bash"}
    done = soundmark(environ=words)
    assert (done.status, set(done.out.split())) == (0, offered)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_and_shown(shell: str, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = soundmark("--show-completion", shell, environ=environ)
    installed = soundmark("--install-completion", shell, environ=environ)
    assert (shown.status, installed.status) == (0, 0), installed
    assert "_SOUNDMARK_COMPLETE" in shown.out
    written = [path.read_text() for path in tmp_path.rglob("*soundmark*") if path.is_file()]
    assert [text.strip() for text in written] == [shown.out.strip()]


def test_no_message_shows_the_library_below() -> None:
    for arguments in (("codes", "list", "--status", "gone"), ("codes", "list", "--limit", "x"), ("up", "--port", "-1")):
        done = soundmark(*arguments)
        assert done.status == 2
        assert "Value error" not in done.err
        assert "Input should be" not in done.err
        assert "unable to parse" not in done.err


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from soundmark.cli import main\n"
        "sys.argv = ['soundmark', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted(set(sys.argv_heavy) & set(sys.modules)), file=sys.stderr)"
    ).replace("sys.argv_heavy", repr(HEAVY))
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stderr == "[]\n"


@pytest.mark.parametrize(
    "arguments",
    [("unheard-of",), ("serve",), ("serve", "core", "--port", "65536"), ("work", "audio"), ("up", "--unheard-of")],
)
def test_wrong_usage_is_status_2(arguments: tuple[str, ...]) -> None:
    done = soundmark(*arguments)
    assert (done.status, done.out) == (2, "")
    assert "Traceback" not in done.err
    assert "Usage: soundmark" in done.err


def test_config_check_names_all_faults_at_once() -> None:
    done = soundmark(
        "config",
        "check",
        environ={
            "SOUNDMARK_BASE_URL": "ftp://secret.example",
            "SOUNDMARK_DATABASE_POOL_SIZE": "1000",
            "SOUNDMARK_MASTER_KEYS": "x",
            "SOUNDMARK_AUDIENCE_CREDENTIAL": "short-secret",
        },
    )
    assert (done.status, done.out) == (1, "")
    lines = done.err.splitlines()
    named = [line.partition(":")[0] for line in lines[:-1]]
    assert sorted(named) == [
        "SOUNDMARK_AUDIENCE_CREDENTIAL",
        "SOUNDMARK_AUDIENCE_DATABASE_URL",
        "SOUNDMARK_AUDIENCE_URL",
        "SOUNDMARK_AUDIO_CREDENTIAL",
        "SOUNDMARK_AUDIO_URL",
        "SOUNDMARK_BASE_URL",
        "SOUNDMARK_CONSOLE_KEY or SOUNDMARK_MASTER_KEY must be set",
        "SOUNDMARK_CORE_DATABASE_URL",
        "SOUNDMARK_DATABASE_POOL_SIZE",
        "SOUNDMARK_MASTER_KEY",
        "SOUNDMARK_MASTER_KEYS",
    ]
    assert lines[-1] == "soundmark: 11 settings are wrong or missing"
    assert "secret" not in done.err


def test_config_check_of_one_component_needs_no_other() -> None:
    environ = {"SOUNDMARK_AUDIO_CREDENTIAL": "a-credential-of-audio"}
    done = soundmark("config", "check", "audio", environ=environ)
    assert (done.status, done.out, done.err) == (0, "ok\n", "")


@pytest.mark.parametrize("command", [("serve", "core"), ("work", "core"), ("migrate", "audience"), ("keys", "list")])
def test_a_command_without_its_settings_is_refused_in_one_line(command: tuple[str, ...]) -> None:
    done = soundmark(*command)
    assert (done.status, done.out) == (1, "")
    (line,) = done.err.splitlines()
    assert line.startswith("soundmark: ")
    assert "SOUNDMARK_" in line
    assert "is not set" in line
    assert ("; add --data-dir .soundmark, if `soundmark up` runs here" in line) == (command[0] != "serve")


@pytest.mark.parametrize("command", [("work", "core"), ("migrate", "core"), ("keys", "list")])
def test_a_data_dir_where_nothing_runs_is_refused_in_one_line(command: tuple[str, ...]) -> None:
    done = soundmark(*command, "--data-dir", "/nonexistent")
    assert (done.status, done.out) == (1, "")
    assert done.err == "soundmark: /nonexistent/up.json does not exist: no `soundmark up` is running there\n"


@pytest.mark.parametrize("arguments", [("openapi",), ("--help",)])
def test_output_that_cannot_be_written_is_one_line(arguments: tuple[str, ...]) -> None:
    """The disk is full, say. A broken pipe is silent: somebody has seen enough."""
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "soundmark", *arguments]
        done = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE, env=clean_environ())
    assert (done.returncode, done.stderr) == (1, b"soundmark: the output: No space left on device\n")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("hear", "a\nb\x1b[31m"), r"a b\u001b[31m cannot be heard: No such file or directory"),
        (("codes", "wav", "xr_x", "--out", "a" * 300), "a: File name too long"),
    ],
    ids=["unprintable", "too long"],
)
def test_a_name_that_no_file_can_have_is_refused_in_one_line(arguments: tuple[str, ...], reason: str) -> None:
    done = soundmark(*arguments)
    assert (done.status, done.out) == (1, "")
    (line,) = done.err.splitlines()
    assert line.startswith("soundmark: ")
    assert line.endswith(reason)
