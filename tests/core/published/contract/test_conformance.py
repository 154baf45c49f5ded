"""Every operation keeps to the OpenAPI document, whatever it is sent: schemathesis against the production app."""

import contextlib
import hashlib
import hmac
import json
import re
import zlib
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import httpx2
import psycopg
import pytest
import requests
import schemathesis
from golden_files import golden_files
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import missing_required_header, positive_data_acceptance
from support.api.core_settings import OPERATOR_TOKEN, core_settings
from support.audience.client import audience_settings
from support.processes.running_apps import served_in_thread
from support.processes.secret_leaks import remember_secret
from support.tenancy.release_evidence import make_evidence
from support.tenancy.tenant import INTENT

from soundmark.audience.app import create_app as create_audience_app
from soundmark.core.app import create_app
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.postgres.migrations import migrate
from soundmark.sandbox.app import create_app as create_sandbox
from soundmark.sandbox.options import SandboxOptions, choose_credentials, settings_for_core

# The served app runs in another thread, and its libraries may draw from `random` while a case is drawn.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")

ID_CHARS_MAX = 160  # Longer texts were drawn to be refused.
SIGNATURE = re.compile(r"sha256=[0-9A-Fa-f]{64}")
AUTHORIZATION = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
CONFIG = {
    "generation": {
        "deterministic": True,
        # Drawn beside the cases of the coverage phase, which try every boundary of every member. Each run draws the
        # same ones, so more of them cost processor time in every run, and find a fault once at most.
        "max-examples": 10,
        "database": "none",
        # The operator sends every case; `ignored_auth` repeats some without a credential and with a false one.
        "with-security-parameters": False,
    },
    # Responses must not influence the next requests: ids differ in each run.
    "phases": {
        "examples": {"extra-data-sources": {"responses": False}},
        "coverage": {"extra-data-sources": {"responses": False}},
        "fuzzing": {"extra-data-sources": {"responses": False}, "error-feedback": {"enabled": False}},
    },
}
DOCUMENT = json.loads(golden_files()["openapi.json"])  # test_golden.py compares it with what Core serves.
# Its cases are made when a test runs: every worker collects every test, and they are 800 MB.
SCHEMA = schemathesis.pytest.from_fixture("published_schema")
OPERATIONS = [
    (method, path, operation["operationId"])
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


def taking(name: str) -> frozenset[str]:
    """Return the operations that take a parameter of this name."""
    return frozenset(
        operation["operationId"]
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
        if any(parameter["name"] == name for parameter in operation.get("parameters", ()))
    )


ISSUANCE = frozenset({"issue_code", "issue_codes"})
RECOVERY = frozenset({"recover_code", "recover_codes"})


@dataclass(frozen=True)
class SemanticRule:
    """A rule that the document states in words because no schema can, and the response to a breach of it.

    `check` is the schemathesis check that would report the response as a fault of the document.
    """

    says: str
    operations: frozenset[str]
    code: str
    pointers: frozenset[str] = frozenset()
    check: Any = positive_data_acceptance

    def explains(self, operation: str, answer: Any) -> bool:
        """Return whether this rule, and nothing else, is the reason for the refusal."""
        if operation not in self.operations or answer.status_code < 400:
            return False
        problem = answer.json()
        pointers = {error["pointer"] for error in problem.get("errors", ())}
        return problem["code"] == self.code and pointers <= self.pointers


SEMANTIC_RULES = [
    SemanticRule(
        "The organisation is named in one place at least, and alike wherever it is named.",
        taking("X-Svc-Organization-Id"),
        "validation_failed",
        frozenset({"/organization_id", "/X-Svc-Organization-Id"}),
    ),
    SemanticRule(
        "A cursor is one that this list gave out for the same filters.",
        taking("cursor"),
        "invalid_cursor",
        frozenset({"/cursor"}),
    ),
    SemanticRule(
        "A period ends after it begins.",
        frozenset({"list_codes", "read_audience_report", "read_legacy_report", "create_campaign", "update_campaign"})
        | {"replay_webhook_events"},
        "validation_failed",
        frozenset({"/created_from", "/from", "/ends_at", "/to"}),
    ),
    SemanticRule(
        "The repetitions of a Code follow each other within the file, and no more are heard than there are.",
        frozenset({"issue_decode_certificate"}),
        "validation_failed",
        frozenset({"/repetitions", "/codecs"}),
    ),
    SemanticRule(
        "A webhook endpoint is on the public internet.",
        frozenset({"create_webhook_endpoint", "update_webhook_endpoint"}),
        "validation_failed",
        frozenset({"/url"}),
    ),
    SemanticRule(
        "An allowed host is a DNS name, once.",
        frozenset({"put_allowed_hosts"}),
        "validation_failed",
        frozenset({"/hosts", *(f"/hosts/{number}" for number in range(100))}),
    ),
    SemanticRule(
        "An intent leads where its project allows.", ISSUANCE, "validation_failed", frozenset({"/intent/resource/url"})
    ),
    SemanticRule("An address may send few reports in an hour.", frozenset({"report_abuse"}), "rate_limited"),
    SemanticRule(
        "A report names its Code once.", frozenset({"report_abuse"}), "validation_failed", frozenset({"", "/"})
    ),
    SemanticRule("A Code ends in the future.", ISSUANCE, "validation_failed", frozenset({"/expires_at"})),
    SemanticRule("A dry run takes no idempotency key.", ISSUANCE, "validation_failed", frozenset({"/Idempotency-Key"})),
    SemanticRule(
        "An intent has a canonical form of 16 KiB and 32 levels at most.",
        ISSUANCE | RECOVERY,
        "intent_not_canonical",
        frozenset({"/intent"}),
    ),
    SemanticRule(
        "The tenant is judged before the header that a recovery requires.",
        RECOVERY,
        "organization_not_found",
        check=missing_required_header,
    ),
    SemanticRule(
        "The confirmation is the id in the path.",
        frozenset({"delete_organization", "delete_project"}),
        "confirmation_mismatch",
    ),
    SemanticRule("The token is that of a pending invitation.", frozenset({"accept_invitation"}), "invitation_invalid"),
    SemanticRule(
        "Mail can reach the address.", frozenset({"create_invitation"}), "validation_failed", frozenset({"/email"})
    ),
    SemanticRule(
        "A demo keeps what it measures for 14 days at most.",
        frozenset({"create_integration", "change_integration_retention"}),
        "validation_failed",
        frozenset({"/retention_days"}),
    ),
    SemanticRule("The proof is one that Core signed for this Code.", frozenset({"deliver_event"}), "proof_invalid"),
    SemanticRule(
        "A setting has the kind of value that its name says.",
        frozenset({"put_platform_configuration"}),
        "validation_failed",
        frozenset({"/value"}),
    ),
    SemanticRule(
        "A plan keeps its product, and a seeded plan stays active.",
        frozenset({"put_plan"}),
        "validation_failed",
        frozenset({"/product", "/active"}),
    ),
    SemanticRule(
        "An offer keeps its plan and its provider.",
        frozenset({"put_offer"}),
        "validation_failed",
        frozenset({"/plan_id", "/provider"}),
    ),
]


@dataclass(frozen=True)
class Target:
    """A Core on a real socket beside a real Audience, with one tenant and one Code in it."""

    client: httpx2.Client
    session: requests.Session  # What schemathesis calls with; a new one for each call would open a connection too.
    ids: dict[str, str]
    suspended_id: str  # Of another organisation, because a suspension would refuse what other operations try.
    _integrations: dict[str, Any] = field(default_factory=dict, init=False)

    @property
    def url(self) -> str:
        return str(self.client.base_url)

    def integration_of(self, label: str) -> Any:
        """Return an integration for the operation alone: one operation revokes what another has to read."""
        if label not in self._integrations:
            tenant_query = {name: self.ids[name] for name in ("organization_id", "project_id")}
            made = make(self.client, "/v1/audience/integrations", **tenant_query, mode="demo", retention_days=14)
            remember_secret(made["hmac_secret"])
            self._integrations[label] = made
        return self._integrations[label]

    def make_some_ids_real(self, case: schemathesis.Case) -> None:
        """Replace made-up ids by existing ones in most cases, because the responses differ.

        Only where a text is wanted and a text was drawn: values that were drawn to be refused stay.
        """
        drawn = [case.path_parameters, case.query, case.headers, case.body]
        containers = [part for part in drawn if isinstance(part, MutableMapping)]
        if zlib.crc32(repr([dict(part) for part in containers]).encode("utf-8", "backslashreplace")) % 4 == 0:
            return
        integration = self.integration_of(case.operation.label)
        real = {**self.ids, "integration_id": integration["id"]}
        if case.operation.label.endswith("/suspension"):
            real["organization_id"] = self.suspended_id
        for container in containers:
            for name in container.keys() & real.keys():
                if isinstance(container[name], str) and 0 < len(container[name]) <= ID_CHARS_MAX:
                    container[name] = real[name]
        if SIGNATURE.fullmatch(str(case.headers.get("X-Svc-Signature"))):
            # Like the integration's publisher: without the signature, only the signature is judged.
            sent = requests.Request(**case.as_transport_kwargs(base_url=self.url)).prepare().body or b""
            body = sent if isinstance(sent, bytes) else sent.encode()
            digest = hmac.new(integration["hmac_secret"].encode(), body, hashlib.sha256).hexdigest()
            case.headers["X-Svc-Signature"] = f"sha256={digest}"


@pytest.fixture(scope="module")
def published_schema() -> Any:
    """The published document, for schemathesis."""
    return schemathesis.openapi.from_dict(DOCUMENT, config=SchemathesisConfig.from_dict(CONFIG))


@pytest.fixture(scope="module")
def target(cluster: RunningCluster, audio_url: str) -> Iterator[Target]:
    """A Core that schemathesis may call as it likes."""
    core_url = cluster.create_role_and_database("core_of_conformance")
    migrate(core_url, "soundmark.core")
    with psycopg.connect(core_url.reveal(), autocommit=True) as connection:
        # No worker reads evidence here. This stays fresh for a quarter of an hour, longer than the module takes.
        connection.execute(
            "INSERT INTO release_readiness (computed_at, evidence) VALUES (now() + interval '5 minutes', %s)",
            [json.dumps(make_evidence())],
        )
    own_url = cluster.create_role_and_database("audience_of_conformance")
    migrate(own_url, "soundmark.audience")
    with contextlib.ExitStack() as stack:
        audience_url = stack.enter_context(served_in_thread(create_audience_app(audience_settings(own_url))))
        options = SandboxOptions("", choose_credentials({}, SystemEntropy()))
        remember_secret(options.secret("SUPPORT_API_KEY"))
        outside = settings_for_core(stack.enter_context(served_in_thread(create_sandbox(options))), options)
        desk = {name.lower(): outside[name] for name in outside if name.startswith("SUPPORT_")}
        settings = core_settings(core_url, audio_url=audio_url, audience_url=audience_url, **desk)
        served = stack.enter_context(served_in_thread(create_app(settings)))
        # Seldom used: a kept connection would be closed by the server at the moment of its next use.
        limits = httpx2.Limits(max_keepalive_connections=0)
        client = stack.enter_context(
            httpx2.Client(base_url=served, headers=AUTHORIZATION, trust_env=False, limits=limits)
        )
        session = stack.enter_context(requests.Session())
        session.trust_env = False
        organization_id = make(client, "/v1/organizations", name="Radio Nordlicht")["id"]
        project_id = make(client, "/v1/projects", organization_id=organization_id, name="Morning show")["id"]
        tenant = {"organization_id": organization_id, "project_id": project_id}
        tenant_query = {**tenant, "issuer": "Radio", "expires_at": "2999-01-01T00:00:00.000Z", "intent": INTENT}
        # Two, because one is revoked on the way.
        ids = {"xr_id": make(client, "/v1/codes", **tenant_query)["xr_id"]}
        ids |= {"broadcast_token": make(client, "/v1/codes", **tenant_query)["broadcast_token"]}
        suspended_id = make(client, "/v1/organizations", name="Radio Südlicht")["id"]
        yield Target(client, session, {**tenant, **ids, "X-Svc-Organization-Id": organization_id}, suspended_id)


def make(client: httpx2.Client, path: str, **body: Any) -> Any:
    return client.post(path, json=body).raise_for_status().json()


def answers_are_known(label: str) -> Any:
    """Return the test of one operation: every response is documented, by all default checks."""

    @SCHEMA.include(name=label).parametrize()
    def test(case: schemathesis.Case, target: Target) -> None:
        target.make_some_ids_real(case)
        response = case.call(base_url=target.url, session=target.session, headers=AUTHORIZATION)
        identity = case.operation.definition.raw["operationId"]
        excused = [rule.check for rule in SEMANTIC_RULES if rule.explains(identity, response)]
        case.validate_response(response, excluded_checks=excused, headers=AUTHORIZATION)
        if identity == "issue_code" and response.request.headers.get("Content-Type") == "application/json":
            assert_the_framework_agrees(target, response)

    return test


def assert_the_framework_agrees(target: Target, answer: Any) -> None:
    """A plain request for a single Code does not enter the framework; with a parameter of its media type, it does.

    Issued Codes are not the same twice; `test_issuance_shortcut` compares them.
    """
    sent = answer.request
    as_before = {"X-Request-Id": answer.headers["x-request-id"][0]}
    headers = {**sent.headers, **as_before, "Content-Type": "application/json; charset=utf-8"}
    other = target.session.request(sent.method, sent.url, data=sent.body, headers=headers)
    if {answer.status_code, other.status_code} <= {HTTPStatus.CREATED, HTTPStatus.TOO_MANY_REQUESTS}:
        return
    assert other.status_code == answer.status_code
    assert other.content == answer.content
    shown = {name.lower(): value for name, value in other.headers.items()}
    assert {**shown, "date": ""} == {**{name: each[0] for name, each in answer.headers.items()}, "date": ""}


# A name for each: pytest gives all tests that schemathesis makes of one function the same id, and xdist would run one.
for method, path, operation in OPERATIONS:
    vars()[f"test_{operation}_answers_as_documented"] = answers_are_known(f"{method.upper()} {path}")
