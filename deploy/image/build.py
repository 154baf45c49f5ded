"""Build the OCI image into dist/, without a daemon, a shell in it, or rights: `make image`.

The image has three layers: a Python from packages of Debian 12, our dependencies from the hashed lock file, and our two
wheels. It needs a Debian 12 with Python 3.11, because wheels are chosen for the Python that installs them.
"""

import argparse
import hashlib
import json
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import oci
import sbom

ROOT = Path(__file__).resolve().parents[2]
USER = 10001
SIZE_MAX = 200_000_000
PYTHON = "/usr/bin/python3.11"
# Where Debian's Python looks for packages of others.
DEPENDENCIES = "usr/lib/python3/dist-packages"
OURS = "usr/local/lib/python3.11/dist-packages"
# Documentation, and what only compilers, type checkers and other programs than Python read.
_LEFT_OUT = re.compile(
    r"usr/share/(?:doc(?!/[^/]+/copyright$)|man|lintian|locale|binfmts|info|bug|ca-certificates)/"
    r"|usr/lib/binfmt\.d/|etc/(?:update-motd\.d|default)/|usr/lib/x86_64-linux-gnu/gconv/"
    r"|usr/lib/python3\.11/(?:pydoc_data|lib2to3|idlelib|test|ensurepip|distutils|tkinter|turtledemo|sqlite3)/"
    r"|lib-dynload/_\w*test|numpy/_core/_(?:simd|\w+_tests)\."
    r"|dist-packages/bin/|\.(?:pyi|pxd|pyx|c|h|hpp|a)$"
    r"|(?:^|/)tests/|dist-packages/(?:numpy/(?:f2py|distutils)|sqlalchemy/testing)/"
    # Migrations are statements for PostgreSQL.
    r"|dist-packages/sqlalchemy/(?:orm|dialects/(?:mssql|mysql|oracle|sqlite))/"
    r"|(?:^|/)(?:direct_url\.json|REQUESTED|INSTALLER|RECORD)$"
    # The console speaks two languages.
    r"|babel/locale-data/(?!(?:en|fr)(?:_|\.)|root\.)"
    # Types alone, and classes of events that we do not take.
    r"|dist-packages/stripe/(?:params|events)/"
    # The documentation site, of 17 MB. Without it, no page of the console leads there.
    r"|dist-packages/soundmark/console/documentation_site/"
    # For the colours of source text in a terminal.
    r"|pygments/lexers/(?!__init__|_mapping|python|special)"
)


def main() -> None:
    """Build the image, and print what it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="the folder for the image and its lists")
    into = parser.parse_args().into
    require_debian()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    commit, committed_s = describe_commit()
    created = datetime.fromtimestamp(committed_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        roots = [Path(folder) / name for name in ("debian", "dependencies", "ours")]
        debian = install_debian(roots[0])
        install_python(roots[1] / DEPENDENCIES, "--require-hashes", "-r", str(ROOT / "requirements" / "runtime.txt"))
        install_python(roots[2] / OURS, *(str(wheel) for wheel in sorted((ROOT / "dist").glob("*.whl"))))
        write_system_files(roots[0])
        write_command(roots[2])
        for root in roots:
            prune(root)
        strip_libraries(roots[1] / DEPENDENCIES)
        compile_modules(roots)
        python = [
            it
            for root in roots
            for it in sbom.read_distributions(root / DEPENDENCIES) + sbom.read_distributions(root / OURS)
        ]
        document = sbom.write_sbom([*debian, *python], version=version, created=created)
        bill = json.dumps(document, indent=1) + "\n"
        place = roots[2] / "usr" / "share" / "doc" / "soundmark" / "sbom.cdx.json"
        place.parent.mkdir(parents=True)
        place.write_text(bill, "utf-8")
        contents = list_contents(roots)
        layers = [oci.pack(root, mtime=committed_s, modes={"tmp": 0o1777}) for root in roots]
    layout = into / "image"
    shutil.rmtree(layout, ignore_errors=True)
    manifest = oci.Layout(layout).finish(layers, config(version, commit, created), created, f"soundmark:{version}")
    oci.archive(layout, into / f"soundmark-{version}.oci.tar")
    (into / "image.cdx.json").write_text(bill, "utf-8")
    (into / "image.contents.txt").write_text(contents, "utf-8")
    size = sum(len(layer) for layer in layers)
    packed = (into / f"soundmark-{version}.oci.tar").stat().st_size
    print(f"{manifest.digest}: {size / 1e6:.0f} MB, {packed / 1e6:.0f} MB packed, {len(debian) + len(python)} packages")
    if size > SIZE_MAX:
        sys.exit(f"the image has more than {SIZE_MAX / 1e6:.0f} MB")


def require_debian() -> None:
    """Refuse a machine whose compiled files would not run in the image."""
    release = Path("/etc/os-release").read_text("utf-8") if Path("/etc/os-release").exists() else ""
    machine = (sys.version_info[:2], os.uname().machine)
    if "VERSION_CODENAME=bookworm" not in release or machine != ((3, 11), "x86_64"):
        sys.exit("the image can be built on Debian 12 with Python 3.11 on x86_64 only")


def describe_commit() -> tuple[str, int]:
    """Return the commit and its time, or a fixed time outside a repository."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%H %ct"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    commit, _, seconds = done.stdout.strip().partition(" ")
    return (commit, int(seconds)) if done.returncode == 0 else ("unknown", 1_735_689_600)


def install_debian(root: Path) -> list[sbom.Package]:
    """Unpack the packages of packages.txt into `root`, as a scanner of images expects them. Nothing of them runs."""
    for name in ("bin", "lib", "lib64", "sbin"):  # As on every Debian since 12.
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    names = (Path(__file__).with_name("packages.txt")).read_text("utf-8").split()
    packages = []
    with tempfile.TemporaryDirectory() as folder:
        # apt's own user may not write here.
        command = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", *names]
        subprocess.run(command, check=True, cwd=folder)
        for file in sorted(Path(folder).glob("*.deb")):
            fields = {it: read_field(file, it) for it in ("Package", "Version")}
            tar = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(file)], stdout=subprocess.PIPE)
            subprocess.run(["tar", "-x", "--keep-directory-symlink", "-C", str(root)], check=True, stdin=tar.stdout)
            if tar.wait() != 0:
                sys.exit(f"{file.name} cannot be unpacked")
            status = root / "var" / "lib" / "dpkg" / "status.d" / fields["Package"]
            status.parent.mkdir(parents=True, exist_ok=True)
            status.write_text(read_field(file, ""), "utf-8")
            packages.append(sbom.Package("deb", fields["Package"], fields["Version"]))
    return packages


def read_field(file: Path, field: str) -> str:
    """Return a field of a Debian package, or all of them."""
    command = ["dpkg-deb", "--field", str(file), *([field] if field else [])]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def install_python(target: Path, *what: str) -> None:
    """Install Python distributions from files or a lock file; what must be compiled is, with our locked tools."""
    command = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--no-compile", "--no-build-isolation"]
    command += ["--disable-pip-version-check", "--root-user-action=ignore", "--target", str(target), *what]
    subprocess.run(command, check=True)


def write_system_files(root: Path) -> None:
    """Write what the packages' own scripts would have written."""
    certificates = sorted((root / "usr" / "share" / "ca-certificates" / "mozilla").glob("*.crt"))
    etc = root / "etc"
    (etc / "ssl" / "certs").mkdir(parents=True, exist_ok=True)
    bundle = "".join(file.read_text("ascii").rstrip("\n") + "\n" for file in certificates)
    (etc / "ssl" / "certs" / "ca-certificates.crt").write_text(bundle, "ascii")
    # Where Debian's OpenSSL looks for them.
    (root / "usr" / "lib" / "ssl").mkdir(parents=True)
    (root / "usr" / "lib" / "ssl" / "cert.pem").symlink_to("/etc/ssl/certs/ca-certificates.crt")
    (root / "usr" / "lib" / "ssl" / "certs").symlink_to("/etc/ssl/certs")
    nowhere = "/usr/sbin/nologin"
    (etc / "passwd").write_text(f"root:x:0:0:root:/:{nowhere}\nsoundmark:x:{USER}:{USER}:Soundmark:/:{nowhere}\n")
    (etc / "group").write_text(f"root:x:0:\nsoundmark:x:{USER}:\n")
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    for name in ("tmp", "proc", "sys", "dev", "run", "var/tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)


def write_command(root: Path) -> None:
    """Write `soundmark`. It reads neither the user's packages nor Python's variables (`-I`)."""
    command = root / "usr" / "bin" / "soundmark"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!{PYTHON} -I\nimport sys\n\nfrom soundmark.cli import main\n\nsys.exit(main())\n")
    command.chmod(0o755)


def prune(root: Path) -> None:
    """Remove what nothing in the image reads."""
    for path in sorted(root.rglob("*"), reverse=True):
        name = str(path.relative_to(root))
        if path.is_dir() and not path.is_symlink():
            if _LEFT_OUT.search(name + "/") and not any(path.iterdir()):
                path.rmdir()
        elif _LEFT_OUT.search(name):
            path.unlink()


def find_modules(folders: Iterable[Path]) -> set[Path]:
    """Return the source files of all modules that our processes import, besides those of Debian's Python.

    Each of ours is imported, with nothing but these folders and Python itself, so that nothing is missing in the image.
    """
    path = [str(folder) for folder in folders]
    command = [sys.executable, "-I", "-S", "-c", _IMPORT_ALL, *path]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return {Path(line) for line in done.stdout.splitlines()}


# Their modules that are no programs: a package's `__main__`, and the environment of Alembic, which only it can import.
_IMPORT_ALL = """
import importlib, pkgutil, sys
sys.path += sys.argv[1:]
sys.dont_write_bytecode = True
for name in ("soundmark", "soundmark_sdk"):
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        if not module.name.endswith((".__main__", ".alembic.env")):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as missing:
                if missing.name not in {"matplotlib", "opentelemetry.exporter"}:  # Of extras, which the image lacks.
                    raise
for module in list(sys.modules.values()):
    if (getattr(module, "__file__", None) or "").endswith(".py"):
        print(module.__file__)
"""


def compile_modules(roots: Sequence[Path]) -> None:
    """Write the bytecode of what is imported, without a time in it: no process of the image may write any.

    That of everything would be another 40 MB.
    """
    debian, *others = roots
    python = Path(sysconfig.get_path("stdlib"))
    for file in find_modules(root / place for root, place in zip(others, (DEPENDENCIES, OURS), strict=True)):
        if file.is_relative_to(python):
            root, name = debian, Path("usr/lib/python3.11") / file.relative_to(python)
        else:
            root = next(root for root in others if file.is_relative_to(root))
            name = file.relative_to(root)
        if (root / name).exists():
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(str(root / name), dfile=f"/{name}", doraise=True, invalidation_mode=mode)


def strip_libraries(folder: Path) -> None:
    """Remove debugging symbols: a tenth of the image. What was linked anew to libraries of its wheel stays as it is."""
    for file in sorted(folder.rglob("*.so")):
        dynamic = subprocess.run(["readelf", "-d", str(file)], check=True, capture_output=True, text=True).stdout
        if not re.search(r"\((?:RPATH|RUNPATH|SONAME)\)", dynamic):
            subprocess.run(["strip", "--strip-unneeded", str(file)], check=True)


def list_contents(roots: Iterable[Path]) -> str:
    """Return a line for each file: its SHA-256, its size and its path."""
    lines = []
    for root in roots:
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
                lines.append(f"{hashlib.sha256(content).hexdigest()} {len(content):>9} /{path.relative_to(root)}\n")
    return "".join(lines)


def config(version: str, commit: str, created: str) -> dict[str, object]:
    """Return how the image is run."""
    label = "org.opencontainers.image"
    return {
        "User": f"{USER}:{USER}",
        "Env": ["PATH=/usr/bin", "LANG=C.UTF-8", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
        "Entrypoint": ["/usr/bin/soundmark"],
        "Cmd": ["--help"],
        "WorkingDir": "/",
        "StopSignal": "SIGTERM",
        "Labels": {
            f"{label}.title": "Soundmark",
            f"{label}.description": "Core, Audience, Audio, the console and their workers: `serve` and `work`.",
            f"{label}.version": version,
            f"{label}.revision": commit,
            f"{label}.created": created,
            f"{label}.licenses": "Apache-2.0",
            f"{label}.base.name": "debian:bookworm",
        },
    }


if __name__ == "__main__":
    main()
