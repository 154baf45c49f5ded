"""The user of the operating system as whom root runs PostgreSQL, which refuses to run as root, and the components."""

import contextlib
import fcntl
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
_CREATION_LOCK: Final = Path("/run/soundmark-user.lock")  # FHS 3.0, section 3.15: only root writes to this folder.


@dataclass(frozen=True, slots=True)
class OsUser:
    """A user without privileges, as whom root runs everything that does not need root."""

    name: str
    uid: int
    gid: int

    def spawn_options(self) -> dict[str, Any]:
        """Return the keyword arguments with which `subprocess` starts a program as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def environ(self) -> dict[str, str]:
        """Return the environment variables of this user, so that programs do not look for files in root's home."""
        home = "/nonexistent"
        with contextlib.suppress(KeyError):
            home = pwd.getpwuid(self.uid).pw_dir
        return {"HOME": home, "USER": self.name, "LOGNAME": self.name}


def spawn_options(user: OsUser | None) -> dict[str, Any]:
    """Return the keyword arguments with which `subprocess` starts a program as `user`; None means ourselves."""
    return {} if user is None else user.spawn_options()


def spawn_environ(user: OsUser | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program that runs as `user`; None means ourselves."""
    return {**environ, **({} if user is None else user.environ())}


def unprivileged_user() -> OsUser | None:
    """Return the user as whom root runs its processes; None if we are not root, since all then runs as ourselves.

    It is `soundmark`, which is created if missing, or else `nobody`.
    """
    if os.geteuid() != 0:
        return None
    return _find(_OWN_NAME) or _create() or _find(_FALLBACK_NAME)


def owner_of(path: Path) -> OsUser | None:
    """Return the owner of `path`, as whom root must run what uses it; None if we are not root, or root owns it."""
    uid = path.stat().st_uid
    if os.geteuid() != 0 or uid == 0:
        return None
    with contextlib.suppress(KeyError):
        entry = pwd.getpwuid(uid)
        return OsUser(entry.pw_name, uid, entry.pw_gid)
    return OsUser(str(uid), uid, path.stat().st_gid)


def can_run(user: OsUser | None, argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> bool:
    """Start `argv` as `user`, and return whether it succeeds."""
    return output_of(user, argv, environ) is not None


def output_of(user: OsUser | None, argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> str | None:
    """Start `argv` as `user`, and return what it writes to standard output; None if it fails."""
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
    """Return whether `user` can actually enter `directory`, through every folder above it."""
    return can_run(user, ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(directory)])


def _find(name: str) -> OsUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    # A user of this name with root's uid would not reduce any privileges.
    return OsUser(entry.pw_name, entry.pw_uid, entry.pw_gid) if entry.pw_uid != 0 else None


def _create() -> OsUser | None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        return None
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    with _CREATION_LOCK.open("w") as lock:
        # Of two `useradd` at once, the second replaces the user of the first by one with another id.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _find(_OWN_NAME) is None:
            subprocess.run(  # noqa: S603 - our own command line
                [useradd, *options, "--shell", "/usr/sbin/nologin", _OWN_NAME],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_TRIAL_TIMEOUT_S,
            )
    return _find(_OWN_NAME)
