"""A new platform setting is one field in the registry: everything else about it follows."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

TESTS: Final = Path(__file__).parent.parent
SOURCE: Final = TESTS.parent / "src" / "soundmark"
# Two settings of a provider that does not exist, added to the end of the last group.
END_OF_GROUPS: Final = "\n\nclass PlatformFallbacks("
ADDED: Final = """\
    parcel_weight_max: ProviderId = Field(30, description="The heaviest parcel.")
    parcel_api_key: SecretText | None = Field(None, description="Opens the parcel service.")
"""
# Runs on a copy of the source, in a process of its own: everything is derived when it is imported.
PROGRAM: Final = """
import json

from settings_page import PAGE, printed
from soundmark.core.app import bare_app
from soundmark.core.published.routes import openapi_document
from soundmark.kit.settings import SettingsInvalid
from soundmark.settings import CoreJobsSettings, read, registry

environ = {
    "SOUNDMARK_CORE_DATABASE_URL": "postgresql://core:pw@db/core",
    "SOUNDMARK_MASTER_KEY": "A" * 43,
    "SOUNDMARK_BASE_URL": "https://soundmark.example",
    "SOUNDMARK_AUDIENCE_URL": "http://audience:8000",
    "SOUNDMARK_AUDIENCE_CREDENTIAL": "c" * 16,
    "SOUNDMARK_PARCEL_API_KEY": "sesame",
}
given = read(CoreJobsSettings, environ)
try:
    read(CoreJobsSettings, {**environ, "SOUNDMARK_PARCEL_WEIGHT_MAX": "0"})
except SettingsInvalid as invalid:
    faults = invalid.faults
try:
    registry.CONFIGURATION["parcel_weight_max"].check(0)
except ValueError as error:
    message = str(error)
document = json.loads(openapi_document(bare_app(), "http://core.test"))
page = printed(PAGE.read_text("utf-8"))
print(json.dumps({
    "default": given.parcel_weight_max,
    "key": given.parcel_api_key.reveal(),
    "faults": faults,
    "message": message,
    "credentials": sorted(registry.CREDENTIALS),
    "answer": document["paths"]["/v1/platform/settings"]["get"]["responses"]["200"]["content"]["application/json"],
    "schemas": {name: document["components"]["schemas"][name] for name in ("SecretsView", "ConfigurationView")},
    "rows": [line for line in page.splitlines() if "PARCEL" in line],
}))
"""


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What is derived from a registry with one more setting."""
    copy = tmp_path_factory.mktemp("source")
    shutil.copytree(SOURCE, copy / "soundmark")
    registry = copy / "soundmark" / "settings" / "registry.py"
    text = registry.read_text(encoding="utf-8")
    assert text.count(END_OF_GROUPS) == 1
    registry.write_text(text.replace(END_OF_GROUPS, ADDED + END_OF_GROUPS), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": f"{copy}{os.pathsep}{TESTS}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_the_environment_sets_it(derived: Any) -> None:
    assert (derived["default"], derived["key"]) == (30, "sesame")


def test_both_ways_to_set_it_validate_it_alike(derived: Any) -> None:
    assert derived["faults"] == [f"SOUNDMARK_PARCEL_WEIGHT_MAX: {derived['message']}"]


def test_the_api_accepts_and_returns_it(derived: Any) -> None:
    assert "parcel_api_key" in derived["credentials"]
    secrets, configuration = derived["schemas"]["SecretsView"], derived["schemas"]["ConfigurationView"]
    assert secrets["properties"]["parcel_api_key"] == {"$ref": "#/components/schemas/SecretView"}
    assert "parcel_api_key" in secrets["required"]
    assert configuration["properties"]["parcel_weight_max"] == {"$ref": "#/components/schemas/WholeSetting"}
    assert "parcel_weight_max" not in secrets["properties"]


def test_the_published_example_shows_it_at_its_default(derived: Any) -> None:
    example = derived["answer"]["example"]
    assert example["secrets"]["parcel_api_key"] == {"configured": False, "updated_at": None}
    assert example["configuration"]["parcel_weight_max"] == {"value": 30, "source": "default", "updated_at": None}


def test_the_page_explains_it(derived: Any) -> None:
    assert derived["rows"] == [
        "| `SOUNDMARK_PARCEL_WEIGHT_MAX` | `30` | 1..2147483647 | The heaviest parcel. |",
        (
            "| `SOUNDMARK_PARCEL_API_KEY` | unset | a credential of 1 to 4096 characters without control characters | "
            "Opens the parcel service. |"
        ),
    ]
