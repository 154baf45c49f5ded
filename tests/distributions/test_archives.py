"""The result of `make dist`: wheels and source archives with everything that runs and nothing else, reproducibly."""

import tarfile
import zipfile
from pathlib import Path

import pytest

from .archives import FOLDERS, ROOT, build, build_editable, source_archive, version, wheel

pytestmark = pytest.mark.xdist_group("distributions")


def sources(package: str) -> set[str]:
    """Return the files of the package's folder, except those that Python creates."""
    folder = FOLDERS[package] / "src"
    found = (path for path in (folder / package).rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(folder)) for path in found}


def receiver_modules(package: str) -> set[str]:
    """Return the modules of soundmark-receiver, which the console of the server's distribution serves."""
    folder = ROOT / "sdk" / "js" / "src"
    return {str(path.relative_to(folder)) for path in folder.rglob("*.js")} if package == "soundmark" else set()


def site_pages(package: str) -> set[str]:
    """Return the files of the documentation site, which the console of the server's distribution serves."""
    folder = ROOT / "build" / "guide"
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)) for path in found} if package == "soundmark" else set()


def test_both_distributions_are_built_under_the_names_of_their_versions(dist: Path) -> None:
    expected = {file(dist, package).name for package in FOLDERS for file in (wheel, source_archive)}
    assert {path.name for path in dist.iterdir()} == expected


def test_both_distributions_have_one_version() -> None:
    assert version("soundmark") == version("soundmark_sdk")


@pytest.mark.parametrize("package", FOLDERS)
def test_a_wheel_holds_the_package_its_licence_and_nothing_else(dist: Path, package: str) -> None:
    with zipfile.ZipFile(wheel(dist, package)) as archive:
        names = set(archive.namelist())
        info = f"{package}-{version(package)}.dist-info"
        assert archive.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    described = {name for name in names if name.startswith(f"{info}/")}
    served = {f"soundmark/console/static/receiver/{name}" for name in receiver_modules(package)}
    site = {f"soundmark/console/documentation_site/{name}" for name in site_pages(package)}
    assert names - described == sources(package) | served | site
    assert f"{package}/py.typed" in names


def test_the_wheel_of_the_server_holds_its_data_files() -> None:
    needed = {
        "soundmark/core/schema.sql",
        "soundmark/audience/schema.sql",
        "soundmark/kit/postgres/jobs_schema_3_10_0.sql",
        "soundmark/core/published/reference/templates/page.html",
        "soundmark/sandbox/templates/page.html",
        "soundmark/sandbox/templates/style.css",
        "soundmark/console/templates/layout.html",
        "soundmark/console/messages/en/layout.json",
        "soundmark/console/messages/fr/layout.json",
        "soundmark/console/static/css/base.css",
        "soundmark/console/static/js/console.js",
        "soundmark/console/static/js/listen/page.js",
    }
    assert needed <= sources("soundmark")
    assert {"index.js", "hearing/worklet.js"} <= receiver_modules("soundmark")
    assert {"index.html", "fr/index.html", "search/search_index.json"} <= site_pages("soundmark"), "`make docs`"


@pytest.mark.parametrize("package", FOLDERS)
def test_a_source_archive_builds_the_same_wheel_and_holds_no_tests(dist: Path, tmp_path: Path, package: str) -> None:
    with tarfile.open(source_archive(dist, package)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(tmp_path, filter="data")
    build(tmp_path / f"{package}-{version(package)}", tmp_path / "built")
    assert wheel(tmp_path / "built", package).read_bytes() == wheel(dist, package).read_bytes()
    assert {name for name in names if not name.startswith("src/")} <= {
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
        *(f"sdk/js/src/{name}" for name in receiver_modules(package)),
        *(f"build/guide/{name}" for name in site_pages(package)),
    }
    assert {name.removeprefix("src/") for name in names if name.startswith("src/")} == sources(package)


@pytest.mark.parametrize("package", FOLDERS)
def test_an_editable_installation_copies_no_source(tmp_path: Path, package: str) -> None:
    """A copy of the modules for browsers would go stale beside the folder that is served."""
    with zipfile.ZipFile(build_editable(FOLDERS[package], tmp_path)) as archive:
        names = archive.namelist()
    assert [name for name in names if ".dist-info/" not in name and not name.endswith(".pth")] == []
    assert any(name.endswith(".pth") for name in names)


@pytest.mark.parametrize("package", FOLDERS)
def test_building_again_yields_the_same_bytes(dist: Path, tmp_path: Path, package: str) -> None:
    build(FOLDERS[package], tmp_path)
    for file in (wheel, source_archive):
        assert file(tmp_path, package).read_bytes() == file(dist, package).read_bytes()
