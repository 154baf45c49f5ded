"""The user that root runs its processes as."""

import os
import pwd
import secrets
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from soundmark.operating_system import os_user


@pytest.fixture
def unknown_name(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Let root's processes run as a user that does not exist yet, and remove that user in the end."""
    name = f"soundmark-{secrets.token_hex(4)}"
    monkeypatch.setattr(os_user, "_OWN_NAME", name)
    yield name
    if os.geteuid() == 0:
        subprocess.run(["/usr/sbin/userdel", name], check=True)


def test_all_who_create_the_user_at_once_get_the_same_one(unknown_name: str) -> None:
    """Otherwise files of a first start could belong to a user that another start replaced."""
    with ThreadPoolExecutor(4) as pool:
        found = {each.result() for each in [pool.submit(os_user.unprivileged_user) for _ in range(4)]}

    if os.geteuid() == 0:
        entry = pwd.getpwnam(unknown_name)
        assert found == {os_user.OsUser(unknown_name, entry.pw_uid, entry.pw_gid)}
    else:
        assert found == {None}
