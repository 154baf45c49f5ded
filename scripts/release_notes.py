"""Print the notes of a release, which are its section of CHANGELOG.md: `python scripts/release_notes.py v0.1.0`.

Exit status: 1 if the commit is not that release, with the reason on standard error. It runs before anything is
installed, so it imports only what Python has.
"""

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent


def main() -> None:
    """Print the notes of the release whose tag is the only argument."""
    print(read_notes(ROOT, sys.argv[1]))


def read_notes(root: Path, tag: str) -> str:
    """Return the section of the changelog, without its heading.

    Raises: SystemExit if a version is not that of the tag, or the section is missing, has no date or is empty.
    """
    for file, version in _read_versions(root).items():
        if tag != f"v{version}":
            sys.exit(f"{file} has the version {version}, so its tag is v{version}, not {tag}.")
    heading = rf"^## \[{re.escape(tag[1:])}\] - (\S+)\n"
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    found = re.search(heading + r"(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None or not found[2].strip():
        sys.exit(f"CHANGELOG.md has nothing about {tag[1:]}.")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", found[1]):
        sys.exit(f"CHANGELOG.md has no date for {tag[1:]}.")
    return found[2].strip()


def _read_versions(root: Path) -> dict[str, str]:
    """Return the version that each published package has, by the file that sets it."""
    python = {
        file: tomllib.loads((root / file).read_text("utf-8"))["project"]["version"]
        for file in ("pyproject.toml", "sdk/python/pyproject.toml")
    }
    file = "sdk/js/package.json"
    return {**python, file: json.loads((root / file).read_text("utf-8"))["version"]}


if __name__ == "__main__":
    main()
