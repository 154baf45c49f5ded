"""Programs can follow the links by themselves: schemathesis goes from response to response on the production app."""

import json
from collections.abc import Iterator
from typing import Any, Final

import hypothesis
import pytest
import schemathesis
from golden_files import golden_files
from hypothesis import HealthCheck
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.generation.stateful.state_machine import StepInput, StepOutput
from schemathesis.specs.openapi import checks
from support.api.core_settings import OPERATOR_TOKEN, core_settings
from support.processes.running_apps import served_in_thread

from soundmark.core.app import create_app
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.postgres.migrations import migrate

# The served app runs in another thread, and its libraries may draw from `random` while a case is drawn.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
CHECKS: Final = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.response_schema_conformance,
    checks.use_after_free,
    checks.ensure_resource_availability,
]
CONFIG: Final = {
    "generation": {"deterministic": True, "mode": "positive", "with-security-parameters": False},
    # Only the links in the document, none that could be guessed from names.
    "phases": {"stateful": {"inference": {"algorithms": []}}},
}
DOCUMENT: Final = json.loads(golden_files()["openapi.json"])  # test_golden.py compares it with what Core serves.
SCHEMA: Final = schemathesis.openapi.from_dict(DOCUMENT, config=SchemathesisConfig.from_dict(CONFIG))
AUTHORIZATION: Final = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
FOLLOWED_MIN: Final = 3  # The walk is random, so the operations differ from run to run; about ten in a usual one.


@pytest.fixture(scope="module")
def served(cluster: RunningCluster, audio_url: str, timely_audience_url: str) -> Iterator[str]:
    url = cluster.create_role_and_database("core_of_links")
    migrate(url, "soundmark.core")
    with served_in_thread(
        create_app(core_settings(url, audio_url=audio_url, audience_url=timely_audience_url))
    ) as address:
        yield address


def test_a_transition_is_made_of_every_link() -> None:
    declared = [
        link
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
        for response in operation["responses"].values()
        for link in response.get("links", ())
    ]
    made = SCHEMA.as_state_machine()._transitions.operations.values()  # type: ignore[attr-defined]  # of the OpenAPI machine
    assert sum(len(transitions.outgoing) for transitions in made) == len(declared) > 100


def test_every_followed_link_responds_as_documented(served: str) -> None:
    followed: set[str] = set()

    class Machine(SCHEMA.as_state_machine()):  # type: ignore[misc]  # made for this document
        def get_call_kwargs(self, case: schemathesis.Case) -> dict[str, Any]:
            assert case is not None
            return {"base_url": served, "headers": AUTHORIZATION}

        def step(self, input: StepInput) -> StepOutput:  # noqa: A002 - the name that it has there
            output: StepOutput = super().step(input)
            if input.transition is not None and output.response.status_code < 300:
                followed.add(input.transition.id)
            return output

        def validate_response(self, response: Any, case: schemathesis.Case, **_: Any) -> None:
            case.validate_response(response, checks=CHECKS, headers=AUTHORIZATION)

    settings = hypothesis.settings(
        max_examples=20,
        stateful_step_count=6,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    Machine.run(settings=settings)
    assert len(followed) >= FOLLOWED_MIN, sorted(followed)
