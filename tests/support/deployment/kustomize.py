"""What `kubectl kustomize` makes of deploy/kubernetes."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

import yaml

from support.deployment.commands import DEPLOY

# Older releases, such as Debian 12's, want other kustomizations under `bases`, which newer ones advise against.
_BASES_UNTIL: Final = (1, 20)


def render(name: str) -> list[dict[str, Any]]:
    """Return the resources of one kustomization."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "kubernetes"
        shutil.copytree(DEPLOY / "kubernetes", copy)
        if _version() <= _BASES_UNTIL:
            for file in copy.glob("*/kustomization.yaml"):
                _move_to_bases(file)
        done = subprocess.run(
            ["kubectl", "kustomize", str(copy / name)], check=False, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
    return list(yaml.safe_load_all(done.stdout))


def _version() -> tuple[int, int]:
    command = ["kubectl", "version", "--client", "--output=yaml"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    version = yaml.safe_load(printed)["clientVersion"]
    return int(version["major"]), int(version["minor"].rstrip("+"))


def _move_to_bases(file: Path) -> None:
    parsed = yaml.safe_load(file.read_text("utf-8"))
    folders = [name for name in parsed["resources"] if (file.parent / name).is_dir()]
    parsed |= {"bases": folders, "resources": [name for name in parsed["resources"] if name not in folders]}
    file.write_text(yaml.safe_dump(parsed), "utf-8")
