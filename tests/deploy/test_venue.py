"""The unit of a venue's agent: systemd accepts it, it is confined, and its options are those of the command."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from support.deployment.commands import DEPLOY, ROOT
from support.processes.up_process import clean_environ

from soundmark.kit.settings import environment_name
from soundmark.settings import ClientSettings

FOLDER: Final = DEPLOY / "systemd" / "venue"
UNIT: Final = FOLDER / "soundmark-play@.service"
COMMAND: Final = "/srv/soundmark/.venv/bin/soundmark"
GUIDE: Final = (ROOT / "docs" / "guides" / "venue.md").read_text("utf-8")
# In tenths, as `systemd-analyze` counts it here: the devices of the sound card cost a little.
EXPOSURE_MAX: Final = 20


@pytest.fixture
def unit(tmp_path: Path) -> str:
    """The unit with a command that exists here, for programs that look at it."""
    path = tmp_path / "soundmark-play@hall.service"
    path.write_text(UNIT.read_text("utf-8").replace(COMMAND, "/bin/true"), "utf-8")
    return str(path)


def run(*command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def read_template() -> dict[str, str]:
    return dict(re.findall(r"^([A-Z_]+)=(.*)$", (FOLDER / "hall.env").read_text("utf-8"), re.MULTILINE))


def test_systemd_finds_no_fault_in_the_unit(unit: str) -> None:
    run("systemd-analyze", "verify", unit)


def test_the_unit_is_confined(unit: str) -> None:
    run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", unit)


def test_it_is_not_started_again_after_a_clean_end_or_wrong_usage() -> None:
    text = UNIT.read_text("utf-8")
    assert "\nRestart=on-failure\n" in text
    assert "\nRestartPreventExitStatus=2\n" in text


def test_the_command_knows_the_options_of_the_template(tmp_path: Path) -> None:
    """Wrong usage would be status 2; without a service it is refused."""
    (command,) = re.findall(rf"^ExecStart={COMMAND} (.*)$", UNIT.read_text("utf-8"), re.MULTILINE)
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_text(f"xak_{'a' * 43}")
    options = read_template()["PLAY_OPTIONS"].replace("--metrics-port 9464", "--metrics-port 0")
    (hours,) = re.findall(r"^# With opening hours: (.*)$", (FOLDER / "hall.env").read_text("utf-8"), re.MULTILINE)
    arguments = shlex.split(
        command.replace("${CREDENTIALS_DIRECTORY}", str(tmp_path)).replace("$PLAY_OPTIONS", f"{options} {hours}")
    )
    environ = clean_environ({"SOUNDMARK_BASE_URL": "http://127.0.0.1:9", "STATE_DIRECTORY": str(tmp_path / "state")})
    done = subprocess.run(
        [sys.executable, "-P", "-m", "soundmark", *arguments, "--out", "-"],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        env=environ,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing is held from an earlier run" in done.stderr


def test_the_template_names_only_settings_that_the_command_reads() -> None:
    known = {environment_name(name) for name in ClientSettings.model_fields}
    assert {name for name in read_template() if name.startswith("SOUNDMARK_")} <= known


def test_the_guide_installs_the_unit_with_a_key_for_root_alone(tmp_path: Path) -> None:
    """The block runs as printed, below another root; only systemd itself is left out."""
    (block,) = re.findall(r"^```sh\n(install .*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    program = re.sub(r"(?<= )/etc/", f"{tmp_path}/etc/", block).partition("systemctl ")[0]
    (tmp_path / "playout.key").write_text("xak_")
    program = program.replace(".soundmark/venue/playout.key", f"{tmp_path}/playout.key")
    done = subprocess.run(
        ["sh", "-eu", "-c", program], check=False, capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert done.returncode == 0, done
    installed = {
        str(path.relative_to(tmp_path / "etc")): f"{path.stat().st_mode & 0o777:o}"
        for path in (tmp_path / "etc").rglob("*.*")
        if path.is_file()
    }
    assert installed == {
        "systemd/system/soundmark-play@.service": "644",
        "soundmark-play/hall.env": "600",
        "soundmark-play/hall.key": "600",
    }
