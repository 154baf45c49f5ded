"""The operating system's user to whom root hands PostgreSQL, which refuses to run as root, and all that serves."""

import contextlib
import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_OWN_NAME: Final = "soundmark"
_FALLBACK_NAME: Final = "nobody"
_TRIAL_TIMEOUT_S: Final = 30


@dataclass(frozen=True, slots=True)
class OsUser:
    """A user without privileges, to whom root hands whatever need not be root's."""

    name: str
    uid: int
    gid: int

    def spawn_options(self) -> dict[str, Any]:
        """Keyword arguments that make `subprocess` start a program as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def environ(self) -> dict[str, str]:
        """Return what the environment says about this user: whoever looks for files of theirs looks in root's else."""
        home = "/nonexistent"
        with contextlib.suppress(KeyError):
            home = pwd.getpwuid(self.uid).pw_dir
        return {"HOME": home, "USER": self.name, "LOGNAME": self.name}


def spawn_options(user: OsUser | None) -> dict[str, Any]:
    """Keyword arguments that make `subprocess` start a program as `user`; None stays who we are."""
    return {} if user is None else user.spawn_options()


def spawn_environ(user: OsUser | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program that runs as `user`; None stays who we are."""
    return {**environ, **({} if user is None else user.environ())}


def unprivileged_user() -> OsUser | None:
    """Return the user that root hands its processes to; None when we are not root, and everything runs as ourselves.

    The user `soundmark`, made if it does not exist, else `nobody`.
    """
    if os.geteuid() != 0:
        return None
    return _find(_OWN_NAME) or _create() or _find(_FALLBACK_NAME)


def owner_of(path: Path) -> OsUser | None:
    """Whom root must become to use what `path` holds; None when we are not root, or root owns it."""
    uid = path.stat().st_uid
    if os.geteuid() != 0 or uid == 0:
        return None
    with contextlib.suppress(KeyError):
        entry = pwd.getpwuid(uid)
        return OsUser(entry.pw_name, uid, entry.pw_gid)
    return OsUser(str(uid), uid, path.stat().st_gid)


def can_run(user: OsUser | None, argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> bool:
    """Whether `argv`, really started as `user`, ends well."""
    return output_of(user, argv, environ) is not None


def output_of(user: OsUser | None, argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> str | None:
    """Return what `argv`, really started as `user`, writes to standard output; None when it does not end well."""
    try:
        done = subprocess.run(  # noqa: S603 - our own command lines
            argv,
            check=False,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=_TRIAL_TIMEOUT_S,
            env=spawn_environ(user, environ),
            **spawn_options(user),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def can_enter(user: OsUser | None, directory: Path) -> bool:
    """Whether `user` can really go to `directory`, every folder above it included."""
    return can_run(user, ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(directory)])


def _find(name: str) -> OsUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    # A user of this name with root's number would be no step down.
    return OsUser(entry.pw_name, entry.pw_uid, entry.pw_gid) if entry.pw_uid != 0 else None


def _create() -> OsUser | None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        return None
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    subprocess.run(  # noqa: S603 - our own command line
        [useradd, *options, "--shell", "/usr/sbin/nologin", _OWN_NAME],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_TRIAL_TIMEOUT_S,
    )
    return _find(_OWN_NAME)
