"""Exports, closure preflights, deletions and their certificates, over connections that break."""

import base64
import hashlib
import io
import json
import stat
from pathlib import Path
from typing import Any, Final

import pytest
from soundmark_sdk import read_key_history, verify_certificate
from soundmark_sdk.client import AnswerMalformed, ApiProblem, AsyncClient, Client, ServiceUnreachable

from .issuer import Issuer, compact
from .issuing_service import (
    CREDENTIAL,
    ORGANIZATION,
    PROJECT,
    Fault,
    IssuingService,
    answer_with,
    lose_request,
    make_problem,
    stay_silent,
)
from .stand_ins import FakeClock, make_response
from .test_certificate import make_document

ARCHIVE: Final = b'{"format":"svc-project-archive-v1"' + b"," * 100_000 + b"}\n"
CERTIFICATE_ID: Final = "dct_0123456789abcdefABCDEF"
LOCATION: Final = f"/v1/deletion-certificates/{CERTIFICATE_ID}"
PREFLIGHT: Final = {
    "can_delete": True,
    "blockers": [],
    "deletes": {"campaigns": 1, "codes": 2, "active_codes": 1, "api_keys": 0, "audience_integrations": None},
    "certificate_id": CERTIFICATE_ID,
    "deletion_requested_at": None,
}


def make_client(service: IssuingService, clock: FakeClock, **settings: Any) -> AsyncClient:
    tenant = {"organization_id": ORGANIZATION, "project_id": PROJECT}
    return AsyncClient(service.url, CREDENTIAL, clock=clock, **{"timeout_s": 5, **tenant, **settings})


def make_answer(document: Any, status: int = 200, **headers: str) -> Fault:
    return answer_with(make_response(status, compact(document), **headers))


def digest_of(body: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def make_archive_answer(body: bytes = ARCHIVE, digest: str | None = None) -> Fault:
    return answer_with(make_response(200, body, Content_Digest=digest_of(ARCHIVE) if digest is None else digest))


def list_names(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir()]


def make_certificate(subject_type: str, subject_id: str) -> dict[str, Any]:
    document = make_document(subject_type)
    subject = {"type": subject_type, "id": subject_id, "organization_id": ORGANIZATION}
    return Issuer().signed({**document, "subject": subject})


DELETED: Final = answer_with(make_response(204, Location=LOCATION))
CERTIFIED: Final = make_answer(make_certificate("organization", ORGANIZATION))
GONE: Final = answer_with(make_problem(404, "organization_not_found"))
UNKNOWN: Final = answer_with(make_problem(404, "deletion_certificate_not_found"))
UNAVAILABLE: Final = answer_with(make_problem(503, "audience_unavailable"))


async def test_an_archive_is_written_as_it_arrives(issuing: IssuingService, clock: FakeClock, tmp_path: Path) -> None:
    issuing.add_faults(make_archive_answer(), make_archive_answer())
    path, into, progress = tmp_path / "archive.json", io.BytesIO(), []
    path.write_bytes(b"an older one")
    async with make_client(issuing, clock) as client:
        size = await client.organizations.export(path, on_progress=lambda *numbers: progress.append(numbers))
        assert await client.projects.export(into) == size == len(ARCHIVE)
    assert path.read_bytes() == into.getvalue() == ARCHIVE
    assert progress[-1] == (len(ARCHIVE), len(ARCHIVE))
    assert list_names(tmp_path) == ["archive.json"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "it holds addresses of people"
    assert [request.path for request in issuing.state.requests] == [
        f"/v1/organizations/{ORGANIZATION}/export",
        f"/v1/projects/{PROJECT}/export?organization_id={ORGANIZATION}",
    ]


async def test_an_archive_that_breaks_off_is_fetched_again(
    issuing: IssuingService, clock: FakeClock, tmp_path: Path
) -> None:
    cut = make_response(200, ARCHIVE, Content_Digest=digest_of(ARCHIVE))[:-50_000]
    issuing.add_faults(answer_with(make_problem(429, "rate_limited")), answer_with(cut), make_archive_answer())
    async with make_client(issuing, clock) as client:
        await client.projects.export(str(tmp_path / "archive.json"))
    assert (tmp_path / "archive.json").read_bytes() == ARCHIVE


@pytest.mark.parametrize(
    "fault",
    [
        make_archive_answer(ARCHIVE[:-1] + b" "),
        make_archive_answer(digest=""),
        make_archive_answer(digest="sha-512=:AAAA:"),
        make_archive_answer(digest="sha-256=:AAAA:"),
        make_archive_answer(digest=digest_of(ARCHIVE).replace("sha", "xsha")),
        make_archive_answer(digest=digest_of(ARCHIVE)[:-1]),
    ],
    ids=["damaged", "none", "another", "short", "misspelt", "cut"],
)
async def test_only_the_body_that_the_service_states_is_kept(
    issuing: IssuingService, clock: FakeClock, tmp_path: Path, fault: Fault
) -> None:
    path = tmp_path / "archive.json"
    path.write_bytes(b"an older one")
    issuing.add_faults(fault)
    async with make_client(issuing, clock) as client:
        with pytest.raises(AnswerMalformed, match="digest"):
            await client.projects.export(path)
    assert (list_names(tmp_path), path.read_bytes()) == (["archive.json"], b"an older one")
    assert len(issuing.routes) == 1


async def test_a_digest_may_stand_among_others(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(make_archive_answer(digest=f"sha-512=:AAAA:, {digest_of(ARCHIVE)},md5=:AA:"))
    async with make_client(issuing, clock) as client:
        assert await client.projects.export(io.BytesIO()) == len(ARCHIVE)


async def test_a_refused_export_leaves_nothing_behind(
    issuing: IssuingService, clock: FakeClock, tmp_path: Path
) -> None:
    issuing.add_faults(answer_with(make_problem(422, "project_export_too_large")))
    async with make_client(issuing, clock) as client:
        with pytest.raises(ApiProblem, match="too_large"):
            await client.projects.export(tmp_path / "archive.json")
        with pytest.raises(FileNotFoundError):
            await client.projects.export(tmp_path / "missing" / "archive.json")
    assert list_names(tmp_path) == []


def test_a_failure_of_the_caller_leaves_nothing_behind(issuing: IssuingService, tmp_path: Path) -> None:
    def break_down(*_: Any) -> None:
        raise RuntimeError("the progress bar broke")

    issuing.add_faults(make_archive_answer())
    with Client(issuing.url, CREDENTIAL, organization_id=ORGANIZATION) as client:
        with pytest.raises(RuntimeError, match="progress bar"):
            client.organizations.export(tmp_path / "archive.json", on_progress=break_down)
        assert list_names(tmp_path) == []


async def test_a_preflight_says_what_stands_in_the_way(issuing: IssuingService, clock: FakeClock) -> None:
    blocked = {
        **PREFLIGHT,
        "can_delete": False,
        "blockers": [{"code": "deletion_operations_pending", "ids": ["aud_1", "aud_2"]}],
        "deletion_requested_at": "2026-11-20T10:00:00.000Z",
    }
    issuing.add_faults(make_answer(PREFLIGHT), make_answer(blocked))
    async with make_client(issuing, clock) as client:
        free, found = await client.organizations.closure_preflight(), await client.projects.closure_preflight()
    assert (free.can_delete, free.blockers, free.certificate_id) == (True, (), CERTIFICATE_ID)
    assert (free.deletes["codes"], free.deletes["audience_integrations"]) == (2, None)
    assert [(one.code, one.ids) for one in found.blockers] == [("deletion_operations_pending", ("aud_1", "aud_2"))]
    assert found.deletion_requested_at is not None
    assert [request.path for request in issuing.state.requests] == [
        f"/v1/organizations/{ORGANIZATION}/closure-preflight",
        f"/v1/projects/{PROJECT}/closure-preflight?organization_id={ORGANIZATION}",
    ]


async def test_a_deletion_returns_the_id_of_its_certificate(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(make_answer(PREFLIGHT), DELETED, DELETED)
    async with make_client(issuing, clock) as client:
        assert await client.organizations.delete(ORGANIZATION) == CERTIFICATE_ID
        assert await client.projects.delete(PROJECT, certificate_id=CERTIFICATE_ID) == CERTIFICATE_ID
    _, organization, project = issuing.state.requests
    assert (organization.method, organization.path) == ("DELETE", f"/v1/organizations/{ORGANIZATION}")
    assert json.loads(organization.body) == {"confirmation": ORGANIZATION}
    assert (project.method, project.path) == ("DELETE", f"/v1/projects/{PROJECT}?organization_id={ORGANIZATION}")
    assert json.loads(project.body) == {"confirmation": PROJECT}


@pytest.mark.parametrize("fault", [lose_request, UNAVAILABLE, answer_with(make_problem(429, "rate_limited"))])
async def test_an_interrupted_deletion_is_resumed(issuing: IssuingService, clock: FakeClock, fault: Fault) -> None:
    issuing.add_faults(make_answer(PREFLIGHT), fault, fault, DELETED)
    async with make_client(issuing, clock) as client:
        assert await client.organizations.delete(ORGANIZATION) == CERTIFICATE_ID
    assert [request.method for request in issuing.state.requests] == ["GET", "DELETE", "DELETE", "DELETE"]


async def test_after_a_lost_answer_the_certificate_says_that_it_is_complete(
    issuing: IssuingService, clock: FakeClock
) -> None:
    issuing.add_faults(make_answer(PREFLIGHT), lose_request, GONE, lose_request, CERTIFIED)
    async with make_client(issuing, clock) as client:
        assert await client.organizations.delete(ORGANIZATION) == CERTIFICATE_ID
    assert issuing.routes[-2:] == [LOCATION, LOCATION]


@pytest.mark.parametrize("certificate", [UNKNOWN, CERTIFIED], ids=["unknown", "of another"])
async def test_what_is_gone_without_a_certificate_was_not_deleted_by_this_call(
    issuing: IssuingService, clock: FakeClock, certificate: Fault
) -> None:
    gone = answer_with(make_problem(404, "project_not_found"))
    issuing.add_faults(make_answer(PREFLIGHT), lose_request, gone, certificate)
    async with make_client(issuing, clock) as client:
        with pytest.raises(ApiProblem, match="project_not_found"):
            await client.projects.delete(PROJECT)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (409, "deletion_billing_active"),
        (409, "deletion_operations_pending"),
        (422, "confirmation_mismatch"),
        (403, "mfa_required"),
        (404, "not_found"),
    ],
)
async def test_a_refused_deletion_is_not_repeated(
    issuing: IssuingService, clock: FakeClock, status: int, code: str
) -> None:
    issuing.add_faults(make_answer(PREFLIGHT), answer_with(make_problem(status, code)))
    async with make_client(issuing, clock) as client:
        with pytest.raises(ApiProblem, match=code):
            await client.organizations.delete(ORGANIZATION)
    assert len(issuing.routes) == 2


async def test_without_a_preflight_nothing_is_deleted(issuing: IssuingService, clock: FakeClock) -> None:
    """Its certificate's id is the only way to learn the result after a lost answer."""
    issuing.add_faults(*[UNAVAILABLE] * 3)
    async with make_client(issuing, clock, attempts_max=3) as client:
        with pytest.raises(ApiProblem):
            await client.organizations.delete(ORGANIZATION)
    assert {request.method for request in issuing.state.requests} == {"GET"}


async def test_the_retries_of_a_deletion_are_limited(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(make_answer(PREFLIGHT), *[UNAVAILABLE] * 9)
    async with make_client(issuing, clock, attempts_max=3) as client:
        with pytest.raises(ApiProblem):
            await client.organizations.delete(ORGANIZATION)
    assert len(issuing.routes) == 4


@pytest.mark.parametrize("location", ["", "/v1/deletion-certificates/dct_another", "/"])
async def test_a_success_must_name_the_certificate(issuing: IssuingService, clock: FakeClock, location: str) -> None:
    issuing.add_faults(make_answer(PREFLIGHT), answer_with(make_response(204, Location=location)))
    async with make_client(issuing, clock) as client:
        with pytest.raises(AnswerMalformed, match="certificate"):
            await client.organizations.delete(ORGANIZATION)


async def test_a_deletion_has_a_time_limit_of_its_own(issuing: IssuingService) -> None:
    issuing.add_faults(make_answer(PREFLIGHT), stay_silent)
    async with make_client(issuing, FakeClock(), deletion_timeout_s=0.2, attempts_max=1) as client:
        with pytest.raises(ServiceUnreachable, match="in time"):
            await client.organizations.delete(ORGANIZATION)
    with pytest.raises(ValueError, match="above 0"):
        Client(issuing.url, CREDENTIAL, deletion_timeout_s=0)


async def test_a_certificate_is_fetched_without_the_credential(issuing: IssuingService, clock: FakeClock) -> None:
    """The members and API keys of a deleted organisation have none that would be accepted."""
    issuing.add_faults(CERTIFIED, answer_with(make_problem(404, "deletion_certificate_not_found")))
    async with make_client(issuing, clock) as client:
        certificate = await client.get_deletion_certificate(CERTIFICATE_ID)
        with pytest.raises(ApiProblem, match="deletion_certificate_not_found"):
            await client.get_deletion_certificate("dct_x")
    assert (certificate.certificate_id, certificate.subject.id) == (CERTIFICATE_ID, ORGANIZATION)
    assert certificate.remaining["core"]["codes"] == 0
    assert verify_certificate(certificate.document, read_key_history(Issuer().key_set())).subject_id == ORGANIZATION
    assert all("authorization" not in request.headers for request in issuing.state.requests)
    assert CREDENTIAL not in str([request.headers for request in issuing.state.requests])


async def test_the_key_history_needs_no_credential(issuing: IssuingService, clock: FakeClock) -> None:
    """Whoever verifies an archive or a certificate need not be a customer."""
    retired = {"keys": [Issuer().jwk(status="retired")]}
    issuing.add_faults(UNAVAILABLE, make_answer(retired), make_answer({"keys": [{"kty": "OKP"}]}), CERTIFIED)
    async with AsyncClient(issuing.url, None, clock=clock) as client:
        assert list((await client.get_key_history()).by_id) == ["key-2026-11"]
        with pytest.raises(AnswerMalformed, match="keys"):
            await client.get_key_history()
        assert (await client.get_deletion_certificate(CERTIFICATE_ID)).subject.id == ORGANIZATION
        with pytest.raises(ValueError, match="needs a credential"):
            await client.usage(organization_id=ORGANIZATION)
    assert issuing.routes == ["/v1/keys/history"] * 3 + [LOCATION]
    assert all("authorization" not in request.headers for request in issuing.state.requests)


def test_blocking_code_leaves_too(issuing: IssuingService) -> None:
    issuing.add_faults(make_answer(PREFLIGHT), DELETED, CERTIFIED)
    with Client(issuing.url, CREDENTIAL, organization_id=ORGANIZATION) as client:
        certificate_id = client.organizations.delete(ORGANIZATION)
        assert client.get_deletion_certificate(certificate_id).subject.type == "organization"
