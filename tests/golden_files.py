"""The golden files of everything published: a change shows up in review, and never happens by accident.

After an intended change: `.venv/bin/python tests/golden_files.py`, then read the diff.
"""

import json
from pathlib import Path
from typing import Final

from soundmark.core.app import bare_app
from soundmark.core.published.catalogue import CATALOGUE
from soundmark.core.published.routes import openapi_document, schema_documents

FOLDER: Final = Path(__file__).with_name("golden")
BASE_URL: Final = "http://core.test"
RENEW: Final = "if it was changed on purpose, run `.venv/bin/python tests/golden_files.py` and review the diff"


def published_files() -> dict[str, str]:
    """Return the text of every golden file as the code produces it now, by its path below `FOLDER`."""
    problems = {code: {"status": int(problem.kind), "title": problem.title} for code, problem in CATALOGUE.items()}
    return {
        "openapi.json": openapi_document(bare_app(), BASE_URL),
        "problems.json": json.dumps(problems, ensure_ascii=False, indent=2) + "\n",
        **{f"schemas/{name}.json": text for name, text in schema_documents(BASE_URL).items()},
    }


def golden_files() -> dict[str, str]:
    """Return the text of every golden file as it was last reviewed."""
    return {str(path.relative_to(FOLDER)): path.read_text("utf-8") for path in sorted(FOLDER.rglob("*.json"))}


def renew() -> None:
    """Write the golden files as the code produces them now, and remove those no longer published."""
    published = published_files()
    for name in golden_files().keys() - published.keys():
        (FOLDER / name).unlink()
    for name, text in published.items():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    renew()
