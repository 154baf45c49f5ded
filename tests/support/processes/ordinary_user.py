"""The `soundmark` command as an ordinary user, even where the tests run as root in a private folder."""

import contextlib
import os
import pwd
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import soundmark_sdk

import soundmark
from soundmark.operating_system.os_user import OsUser, can_run

_LEFT_OUT = shutil.ignore_patterns("test", "tests", "idlelib", "site-packages", "config-3.*", "*.a")


@dataclass(frozen=True, slots=True)
class OrdinaryUser:
    """An unprivileged user and the command that starts `soundmark` for them; `uid` may be our own."""

    uid: int
    gid: int
    command: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if os.geteuid() == 0 else {}


@contextlib.contextmanager
def ordinary_user() -> Iterator[OrdinaryUser]:
    command = (sys.executable, "-P", "-m", "soundmark")
    if os.geteuid() != 0:
        yield OrdinaryUser(os.geteuid(), os.getegid(), command)
        return
    entry = pwd.getpwnam("nobody")
    user = OsUser(entry.pw_name, entry.pw_uid, entry.pw_gid)
    if can_run(user, [*command, "--help"]):
        yield OrdinaryUser(user.uid, user.gid, command)
        return
    with tempfile.TemporaryDirectory(prefix="soundmark-reachable-") as directory:
        copy = _Reachable(Path(directory))
        assert can_run(user, ["/usr/bin/env", *(f"{k}={v}" for k, v in copy.environ.items()), *copy.command, "--help"])
        yield OrdinaryUser(user.uid, user.gid, copy.command, copy.environ)


def add_receiver_files(package: Path, copy_function: Callable[[str, str], object] = shutil.copy2) -> None:
    """Complete a copy of our package as its wheel is completed: with the browser's half of the SDK."""
    source = Path(soundmark.__file__).parents[2] / "sdk" / "js" / "src"
    shutil.copytree(source, package / "console" / "static" / "receiver", copy_function=copy_function)


class _Reachable:
    """A copy of the interpreter, the installed packages and our sources that everybody may read.

    Without it, nobody else could run a virtual environment below /root or a checkout in a private folder.
    """

    def __init__(self, directory: Path) -> None:
        directory.chmod(0o755)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        base = Path(sys.base_prefix)
        python = directory / "python"
        (python / "bin").mkdir(parents=True)
        _link(str(Path(sys.executable).resolve()), str(python / "bin" / version))
        shutil.copytree(base / "lib" / version, python / "lib" / version, copy_function=_link, ignore=_LEFT_OUT)
        for library in (base / "lib").glob("libpython*.so*"):
            _link(str(library.resolve()), str(python / "lib" / library.name))
        folders = {
            "installed": Path(sysconfig.get_paths()["purelib"]),
            "sources": Path(soundmark.__file__).parents[1],
            "sdk": Path(soundmark_sdk.__file__).parents[1],
        }
        for name, folder in folders.items():
            shutil.copytree(folder, directory / name, copy_function=_link)
        add_receiver_files(directory / "sources" / "soundmark", copy_function=_link)
        for path in directory.rglob("*"):
            if path.is_dir():
                path.chmod(0o755)
        self.command = (str(python / "bin" / version), "-P", "-m", "soundmark")
        self.environ = {
            "PYTHONPATH": os.pathsep.join(str(directory / name) for name in folders),
            "LD_LIBRARY_PATH": str(python / "lib"),
        }


def _link(source: str, target: str) -> str:
    """Link the file where that is possible and enough, otherwise make a copy that everybody may read."""
    mode = Path(source).stat().st_mode
    opened = mode | (0o555 if mode & 0o100 else 0o444)
    if mode == opened:
        with contextlib.suppress(OSError):
            os.link(source, target)
            return target
    shutil.copy2(source, target)
    Path(target).chmod(opened & 0o777)
    return target
