"""The release of a tag: its workflow, the notes of its page, and the package for npm."""

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from scripts.release_notes import read_notes

ROOT: Final = Path(__file__).parent.parent
VERSION: Final = "0.1.0"
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE: Final[dict[str, Any]] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))
OF_A_VERSION: Final = ("pyproject.toml", "sdk/python/pyproject.toml", "sdk/js/package.json", "CHANGELOG.md")


def list_steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def list_commands(job: str) -> list[str]:
    return [step["run"] for step in RELEASE["jobs"][job]["steps"] if "run" in step]


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """A folder with the files that name the version, and a dated section about it."""
    for name in OF_A_VERSION:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    change(tmp_path / "CHANGELOG.md", rf"(?m)^## \[{VERSION}\] - .*$", f"## [{VERSION}] - 2026-12-01")
    return tmp_path


def change(file: Path, pattern: str, by: str) -> None:
    text, count = re.subn(pattern, by, file.read_text("utf-8"), count=1)
    assert count == 1, "it changes something"
    file.write_text(text, "utf-8")


def test_every_workflow_runs_commands_that_exist_and_reviewed_actions(subtests: pytest.Subtests) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "release.yml"]
    for path in WORKFLOWS:
        with subtests.test(path.name):
            workflow = yaml.safe_load(path.read_text("utf-8"))
            steps = list_steps(workflow)
            commands = [step["run"] for step in steps if "run" in step]
            assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in steps if "uses" in step)
            assert {name for each in commands for name in re.findall(r"\bmake ([a-z-]+)", each)} <= targets
            files = {name for each in commands for name in re.findall(r"(?:scripts|\.ci)/\w+(?:\.\w+)?", each)}
            assert [name for name in files if not (ROOT / name).is_file()] == []
            assert files
            assert [each for each in commands if "${{" in each] == [], "an expression would become part of the command"
            assert workflow["permissions"] == {"contents": "read"}
            assert all(job["timeout-minutes"] <= 90 for job in workflow["jobs"].values())


def test_a_release_is_checked_and_built_before_a_job_of_its_own_publishes_it() -> None:
    assert RELEASE[True] == {"push": {"tags": ["v*"]}}, "YAML reads `on` as a truth value"
    assert RELEASE["concurrency"]["cancel-in-progress"] is False
    build, publish = RELEASE["jobs"]["build"], RELEASE["jobs"]["publish"]
    notes, checked, image, package, sums = list_commands("build")[1:]
    assert "scripts/release_notes.py" in notes
    assert (checked, image, package) == (".ci/run", "make image", "make npm-package")
    assert sums.endswith(">SHA256SUMS")
    assert "permissions" not in build
    assert (publish["needs"], publish["permissions"]) == ("build", {"contents": "write"})
    (published,) = list_commands("publish")
    assert published.startswith('gh release create "$GITHUB_REF_NAME"')
    assert not any("checkout" in step.get("uses", "") for step in publish["steps"])
    kept = next(step["with"] for step in build["steps"] if "upload-artifact" in step.get("uses", ""))
    assert kept["path"].split() == ["dist/", "build/notes.md"]
    assert published.endswith("--notes-file build/notes.md dist/*")


def test_the_notes_are_the_section_of_the_changelog(released: Path) -> None:
    notes = read_notes(released, f"v{VERSION}")

    assert notes.startswith("### Added")
    assert not re.search(r"^## ", notes, re.MULTILINE)
    assert notes in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("file", "pattern", "by", "reason"),
    [
        *((name, re.escape(VERSION), "0.2.0", f"{name} has the version 0.2.0") for name in OF_A_VERSION[:3]),
        ("CHANGELOG.md", rf"\[{VERSION}\]", "[0.2.0]", "nothing about 0.1.0"),
        ("CHANGELOG.md", rf"(?s)(## \[{VERSION}\] - \S+\n).*", r"\1\n", "nothing about 0.1.0"),
        ("CHANGELOG.md", "2026-12-01", "unreleased", "no date for 0.1.0"),
    ],
)
def test_a_commit_that_is_not_the_release_is_refused(
    released: Path, file: str, pattern: str, by: str, reason: str
) -> None:
    change(released / file, pattern, by)
    with pytest.raises(SystemExit, match=re.escape(reason)):
        read_notes(released, f"v{VERSION}")


def test_a_wrong_tag_ends_the_workflow() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/release_notes.py", "v9.9.9"], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("so its tag is v0.1.0, not v9.9.9.\n")


def test_the_package_for_npm_holds_the_receiver_and_nothing_else(tmp_path: Path) -> None:
    (recipe,) = re.findall(
        r"^npm-package:.*\n.*\n\t@scripts/npm \S+ (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        command = ["scripts/npm", sys.executable, *recipe.replace(" dist ", f" {folder} ").split()]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (one,), (two,) = ([*folder.iterdir()] for folder in (tmp_path / "one", tmp_path / "two"))
    assert one.name == f"soundmark-receiver-{VERSION}.tgz"
    assert one.read_bytes() == two.read_bytes()
    with tarfile.open(one) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
    sources = {str(path.relative_to(ROOT / "sdk/js")) for path in (ROOT / "sdk/js/src").rglob("*.js")}
    assert names == {"LICENSE", "README.md", "package.json", *sources}
