"""The units in deploy/: systemd accepts them, they are confined, and each command has the settings that it needs."""

import re
import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from support.deployment.commands import DEPLOY, ROOT, check_settings

from soundmark.cli.serve import _PORTS

UNITS: Final = sorted((DEPLOY / "systemd").glob("*.service"))
BACKUP: Final = "pgbackrest-soundmark@.service"
COMMAND: Final = "/srv/soundmark/.venv/bin/soundmark"
# In tenths, as `systemd-analyze` counts it here.
EXPOSURE_MAX: Final = 20
GUIDE: Final = (ROOT / "docs" / "operating" / "one-machine.md").read_text("utf-8")


def value_of(unit: Path, name: str) -> str:
    (value,) = re.findall(rf"^{name}=(.*)$", unit.read_text("utf-8"), re.MULTILINE)
    return str(value)


def command_of(unit: Path) -> list[str]:
    program, *arguments = value_of(unit, "ExecStart").split()
    assert program == COMMAND
    return arguments


@pytest.fixture
def units(tmp_path: Path) -> list[str]:
    """The units and the target with a command that exists here, for programs that look at it."""
    for folder in ("systemd", "pgbackrest"):
        shutil.copytree(DEPLOY / folder, tmp_path, dirs_exist_ok=True)
    copies = sorted(path for path in tmp_path.iterdir() if path.suffix in {".service", ".target", ".timer"})
    for unit in copies:
        text = re.sub(rf"{COMMAND}|/usr/bin/(?:psql|pgbackrest)", "/bin/true", unit.read_text("utf-8"))
        unit.write_text(text, "utf-8")
    return [str(unit) for unit in copies]


def run(*command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def test_systemd_finds_no_fault_in_the_units(units: Sequence[str]) -> None:
    run("systemd-analyze", "verify", *(unit.replace("@.", "@full.") for unit in units))


def test_every_unit_is_confined(units: Sequence[str]) -> None:
    services = [unit for unit in units if unit.endswith(".service")]
    report = run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", *services)
    assert report.count("Overall exposure level") == len(services) == 7


def test_every_unit_has_a_user_and_settings_that_suit_its_command(subtests: pytest.Subtests) -> None:
    users = re.findall(r"^u (\S+) ", (DEPLOY / "systemd" / "soundmark.sysusers").read_text("utf-8"), re.MULTILINE)
    guide = (ROOT / "docs" / "guides" / "operating.md").read_text("utf-8")
    files = dict(re.findall(r"^`(/etc/soundmark/\w+\.env)`.*?:\n\n```ini\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL))
    for unit in UNITS:
        with subtests.test(unit.name):
            command = command_of(unit)
            assert value_of(unit, "User") in users
            environ = re.findall(r"^(SOUNDMARK_\w+)=", files[value_of(unit, "EnvironmentFile")], re.MULTILINE)
            check_settings(command, environ)
            if command[0] == "serve":
                assert command[command.index("--port") + 1] == str(_PORTS[command[1]])  # type: ignore[index]  # it has one


def test_all_backups_see_each_others_locks() -> None:
    """With a /tmp of its own, neither the unit of the other timer nor `pgbackrest stop` would be noticed.

    Whoever finds the lock taken tries again: the timers of two backups that were missed start both after a boot.
    """
    unit = DEPLOY / "pgbackrest" / BACKUP
    assert "lock-path" not in (DEPLOY / "pgbackrest" / "pgbackrest.conf").read_text("utf-8")  # So it is in /tmp.
    assert value_of(unit, "Restart") == "on-failure"
    assert value_of(unit, "ReadWritePaths").endswith(" /tmp")
    assert "PrivateTmp" not in unit.read_text("utf-8")


def test_a_timer_names_the_unit_of_the_backup_and_a_type_that_pgbackrest_knows() -> None:
    timers = sorted((DEPLOY / "pgbackrest").glob("*.timer"))
    assert (DEPLOY / "pgbackrest" / BACKUP).is_file()
    assert [value_of(timer, "Unit") for timer in timers] == [BACKUP.replace("@", f"@{it}") for it in ("diff", "full")]
    for timer in timers:
        run("systemd-analyze", "calendar", value_of(timer, "OnCalendar"))


def test_a_unit_stands_for_each_process() -> None:
    components = ["core", "audience", "audio", "console"]
    expected = {f"serve {component}" for component in components} | {"work core", "work audience"}
    assert {" ".join(command_of(unit)[:2]) for unit in UNITS} == expected


def test_the_guide_installs_users_directories_and_units(tmp_path: Path) -> None:
    """The block runs as printed, below another root; only systemd itself is left out."""
    (block,) = re.findall(r"^```sh\n(install .*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    block = re.sub(r"(?<= )/etc/", f"{tmp_path}/etc/", block)
    block = re.sub(r"^(systemd-(?:sysusers|tmpfiles)) ", rf"\1 --root={tmp_path} ", block, flags=re.MULTILINE)
    environment = tmp_path / "etc" / "soundmark" / "core.env"
    environment.parent.mkdir(parents=True)
    environment.write_text("SOUNDMARK_MASTER_KEY=\n")
    program = block.partition("systemctl ")[0]
    done = subprocess.run(
        ["sh", "-eu", "-c", program], check=False, capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert done.returncode == 0, done
    passwd = (tmp_path / "etc" / "passwd").read_text("utf-8")
    assert set(re.findall(r"^(soundmark-\w+):.*:/usr/sbin/nologin$", passwd, re.MULTILINE)) == {
        value_of(unit, "User") for unit in UNITS
    }
    assert stat.S_IMODE(environment.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(environment.stat().st_mode) == 0o600
    installed = tmp_path / "etc" / "systemd" / "system"
    assert {path.name for path in installed.glob("*.service")} == {unit.name for unit in UNITS}
    assert (installed / "soundmark-.service.d" / "common.conf").is_file()
    enabled = set(re.findall(r"soundmark-[a-z-]+(?=\.service|[ \n])", block.partition("systemctl enable")[2]))
    assert enabled == {unit.stem for unit in UNITS}
