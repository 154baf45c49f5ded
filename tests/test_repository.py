"""What every file of the repository keeps to: it names nobody's machine, and what it installs is what was reviewed."""

import json
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PINNED = re.compile(r"[a-z0-9-]+==[^ ;\\]+(?: ; [^\\]+)? \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+")
MADE = {"__pycache__", "dist", "node_modules"}  # And what begins with a dot.
OF_A_MACHINE = re.compile(r"(?<![\w.])/(?:root|home|work|opt)/[A-Za-z.]")


def texts() -> dict[str, str]:
    """Every text of the repository. A bare machine has no git to ask."""
    found = {}
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if (name == ".ci" or name[0] != ".") and name not in MADE]
        for path in (Path(folder, name) for name in names if name != ".git"):
            if path.suffix not in {".png", ".pyc", ".so"}:
                found[str(path.relative_to(ROOT))] = path.read_text(encoding="utf-8")
    return found


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_file_is_nothing_but_versions_and_hashes(lock: Path) -> None:
    rest = "\n".join(line for line in lock.read_text().splitlines() if not line.lstrip().startswith("#")) + "\n"
    assert PINNED.sub("", rest).strip() == ""
    assert "://" not in lock.read_text()


NODE_LOCKS = sorted((ROOT / "tests").glob("*/package-lock.json"))


@pytest.mark.parametrize("lock", NODE_LOCKS, ids=lambda path: path.parent.name)
def test_a_lock_file_of_npm_is_nothing_but_versions_and_hashes(lock: Path) -> None:
    own, *packages = json.loads(lock.read_text())["packages"].values()
    wanted = json.loads((lock.parent / "package.json").read_text())["dependencies"]
    assert own["dependencies"] == wanted
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
    assert all(package["version"] and package["integrity"].startswith("sha512-") for package in packages)
    assert not any("resolved" in package for package in packages), "that would be the address of a registry"


def test_every_folder_of_npm_packages_is_installed_by_make() -> None:
    (named,) = re.findall(r"^NODE_FOLDERS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert sorted(named.split()) == [str(lock.parent.relative_to(ROOT)) for lock in NODE_LOCKS]
    assert NODE_LOCKS


def test_what_an_installation_takes_is_locked() -> None:
    assert [path.name for path in LOCKS] == ["build.txt", "generators.txt", "runtime.txt", "test.txt"]
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if " install --" in line]
    assert len(installs) == 5
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)


def test_no_file_names_a_folder_of_somebodys_machine() -> None:
    found = [f"{name}: {match}" for name, text in texts().items() for match in OF_A_MACHINE.findall(text)]
    assert found == []


def test_what_ci_runs_is_what_the_readme_says() -> None:
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line and line[0] != "#"]
    assert commands[-1] in {"make test", "exec make test"}
    assert "make test" in (ROOT / "README.md").read_text()
