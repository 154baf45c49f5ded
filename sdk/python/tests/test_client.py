"""The client apart from issuing: addresses, credentials, answers, retries and failures."""

import io
import json
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from soundmark_sdk.client import (
    AnswerMalformed,
    ApiProblem,
    AsyncClient,
    AuditFilters,
    Client,
    CodeFilters,
    RefusedField,
    ServiceUnreachable,
)

from .issuer import compact
from .issuing_service import (
    CREDENTIAL,
    ISSUE_REQUEST,
    ORGANIZATION,
    PROJECT,
    Fault,
    IssuingService,
    answer_with,
    lose_request,
    make_code_document,
    make_problem,
    stay_silent,
)
from .stand_ins import FakeClock, make_response

CAMPAIGN: Final = {
    "id": "cmp_0123456789abcdefABCDEF",
    "organization_id": ORGANIZATION,
    "project_id": PROJECT,
    "name": "Summer",
    "starts_at": None,
    "ends_at": "2027-01-01T00:00:00.000Z",
    "status": "active",
    "created_at": "2026-11-20T10:00:00.000Z",
    "archived_at": None,
}


def make_answer(document: Any, status: int = 200) -> Fault:
    return answer_with(make_response(status, compact(document)))


def make_page(*data: Any, cursor: str | None = None) -> Fault:
    return make_answer({"data": list(data), "next_cursor": cursor})


def make_client(service: IssuingService, clock: FakeClock, **settings: Any) -> AsyncClient:
    tenant = {"organization_id": ORGANIZATION, "project_id": PROJECT}
    return AsyncClient(service.url, CREDENTIAL, clock=clock, **{"timeout_s": 5, **tenant, **settings})


def test_a_credential_is_sent_over_https_or_to_this_machine_only(subtests: pytest.Subtests) -> None:
    for base_url in ["http://api.example.org", "ftp://127.0.0.1", "https://u:p@example.org", ""]:
        with subtests.test(base_url=base_url):
            for kind in (Client, AsyncClient):
                with pytest.raises(ValueError, match="base URL") as failure:
                    kind(base_url, CREDENTIAL)
                assert CREDENTIAL not in str(failure.value)


async def test_plain_http_to_other_machines_must_be_allowed() -> None:
    await AsyncClient("http://192.168.1.5", CREDENTIAL, allow_insecure_http=True).aclose()


def test_an_impossible_credential_is_refused_and_not_shown(subtests: pytest.Subtests) -> None:
    for credential in ["", "two words", "line\nbreak", "é", "x" * 8193]:
        with subtests.test(credential=credential):
            with pytest.raises(ValueError, match="credential") as failure:
                Client("https://api.example.org", credential)
            assert not credential or credential not in str(failure.value)


def test_an_impossible_limit_is_refused(subtests: pytest.Subtests) -> None:
    for limits in [{"timeout_s": 0}, {"download_timeout_s": 0}, {"attempts_max": 0}, {"retry_wait_max_s": -1}]:
        with subtests.test(limits=limits), pytest.raises(ValueError, match="above 0"):
            Client("https://api.example.org", CREDENTIAL, **limits)


def test_no_repr_shows_the_credential() -> None:
    with Client("https://api.example.org", CREDENTIAL) as client:
        assert repr(client) == "Client('https://api.example.org')"
        dispatcher = client._sender._dispatcher
        shown = [repr(part) for holder in (client, client._sender, dispatcher) for part in vars(holder).values()]
    assert all(CREDENTIAL not in text for text in shown)


async def test_a_credential_may_change_from_call_to_call(issuing: IssuingService) -> None:
    """An access token lives for minutes."""
    tokens = iter(["first", "second"])
    issuing.add_faults(make_page(), make_page())
    async with AsyncClient(issuing.url, lambda: next(tokens)) as client:
        for _ in range(2):
            assert [one async for one in client.organizations.list()] == []
    assert [request.headers["authorization"] for request in issuing.state.requests] == ["Bearer first", "Bearer second"]


async def test_a_list_fetches_every_page(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(make_page(CAMPAIGN, CAMPAIGN, cursor="a b&c"), make_page(CAMPAIGN))
    async with make_client(issuing, clock) as client:
        campaigns = [one async for one in client.campaigns.list(page_size=2)]
    assert len(campaigns) == 3
    query = f"/v1/campaigns?organization_id={ORGANIZATION}&project_id={PROJECT}&limit=2"
    assert [request.path for request in issuing.state.requests] == [query, f"{query}&cursor=a+b%26c"]


def test_blocking_code_fetches_every_page_too(issuing: IssuingService) -> None:
    issuing.add_faults(make_page(CAMPAIGN, cursor="next"), make_page(CAMPAIGN))
    with Client(issuing.url, CREDENTIAL, organization_id=ORGANIZATION, project_id=PROJECT) as client:
        assert len(list(client.campaigns.list())) == 2
        issuing.add_faults(make_page(CAMPAIGN, cursor="next"))
        assert client.campaigns.page(limit=1).next_cursor == "next"


async def test_filters_are_sent_as_the_contract_names_them(issuing: IssuingService, clock: FakeClock) -> None:
    at = datetime(2026, 11, 20, tzinfo=UTC)
    issuing.add_faults(make_page(), make_page())
    async with make_client(issuing, clock) as client:
        filters = CodeFilters(
            project_id=PROJECT, campaign_id="cmp_1", status="active", issuer="R", created_from=at, created_to=at
        )
        await client.codes.page(filters, limit=7, cursor="c")
        await client.audit_log.page(AuditFilters(action="code.issued", actor="key_1", from_at=at, to_at=at), limit=7)
    codes, entries = (request.path.partition("?")[2] for request in issuing.state.requests)
    moment = "2026-11-20T00%3A00%3A00.000Z"
    assert codes == (
        f"organization_id={ORGANIZATION}&project_id={PROJECT}&campaign_id=cmp_1&status=active&issuer=R"
        f"&created_from={moment}&created_to={moment}&limit=7&cursor=c"
    )
    assert entries == (
        f"organization_id={ORGANIZATION}&action=code.issued&actor=key_1&from={moment}&to={moment}&limit=7"
    )


async def test_omitted_members_do_not_change_and_none_clears_them(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(make_answer(CAMPAIGN), make_answer(CAMPAIGN))
    async with make_client(issuing, clock) as client:
        await client.campaigns.update("cmp_1", starts_at=None)
        await client.campaigns.update("cmp_1", name="N", ends_at=datetime(2027, 1, 1, tzinfo=UTC))
    bodies = [json.loads(request.body) for request in issuing.state.requests]
    assert bodies == [{"starts_at": None}, {"name": "N", "ends_at": "2027-01-01T00:00:00.000Z"}]


@pytest.mark.parametrize("identity", ["", ".", "..", "\udcff"])
async def test_an_id_cannot_change_the_path(issuing: IssuingService, clock: FakeClock, identity: str) -> None:
    async with make_client(issuing, clock) as client:
        with pytest.raises(ValueError, match="not an id"):
            await client.campaigns.stop(identity)
        issuing.add_faults(make_answer({"campaign": CAMPAIGN, "revoked_count": 0, "packs_valid_until": None}))
        await client.campaigns.stop("../codes?x=y#z")
    assert issuing.routes == ["/v1/campaigns/..%2Fcodes%3Fx%3Dy%23z/stop"]


async def test_an_answer_becomes_an_immutable_record(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(make_answer({**CAMPAIGN, "colour": "blue"}))
    async with make_client(issuing, clock) as client:
        campaign = await client.campaigns.archive(CAMPAIGN["id"])
    assert (campaign.starts_at, campaign.ends_at) == (None, datetime(2027, 1, 1, tzinfo=UTC))
    assert campaign.document["colour"] == "blue"
    with pytest.raises(FrozenInstanceError):
        campaign.name = "Winter"  # type: ignore[misc]  # that it fails is the point


def remove_member(document: dict[str, Any], name: str) -> dict[str, Any]:
    return {member: value for member, value in document.items() if member != name}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (remove_member(CAMPAIGN, "status"), "answer lacks the member status"),
        ({**CAMPAIGN, "status": "secret-value"}, r"answer\.status has the wrong type"),
        ({**CAMPAIGN, "ends_at": "tomorrow"}, r"answer\.ends_at has the wrong type"),
        ({**CAMPAIGN, "name": 1}, r"answer\.name has the wrong type"),
        ([], "answer has the wrong type"),
        (None, "answer has the wrong type"),
    ],
)
async def test_an_incomplete_answer_is_a_clear_error(
    issuing: IssuingService, clock: FakeClock, document: Any, message: str
) -> None:
    issuing.add_faults(make_answer(document))
    async with make_client(issuing, clock) as client:
        with pytest.raises(AnswerMalformed, match=message) as failure:
            await client.campaigns.archive(CAMPAIGN["id"])
    assert "secret-value" not in str(failure.value)
    assert len(issuing.routes) == 1


async def test_nested_members_are_checked_too(issuing: IssuingService, clock: FakeClock) -> None:
    codes = {"issued": 3, "monthly_quota": 100, "remaining": 97}
    usage = {"organization_id": ORGANIZATION, "month": "2026-11", "codes": codes}
    mode = {"mode": "demo", "events": 1, "active_integrations": 1, "monthly_quota": None}
    issuing.add_faults(
        make_answer({**usage, "audience": {"status": "available", "modes": [mode]}}),
        make_answer({**usage, "codes": {**codes, "issued": True}, "audience": {"status": "unavailable", "modes": []}}),
        make_answer({**usage, "audience": {"status": "available", "modes": [{}]}}),
        make_page(remove_member(make_code_document(1), "xr_id")),
        make_answer({"secrets": {"smtp_password": {"configured": True}}, "configuration": {}}),
    )
    async with make_client(issuing, clock) as client:
        assert (await client.usage()).audience.modes[0].mode == "demo"
        with pytest.raises(AnswerMalformed, match=r"codes\.issued"):  # A boolean is not a number.
            await client.usage()
        with pytest.raises(AnswerMalformed, match=r"audience\.modes\[\] lacks the member mode"):
            await client.usage()
        with pytest.raises(AnswerMalformed, match=r"data\[\] lacks the member xr_id"):
            await client.codes.page()
        with pytest.raises(AnswerMalformed, match=r"secrets\[\] lacks the member updated_at"):
            await client.platform.settings()


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"\xff"])
async def test_an_answer_that_is_not_json_is_malformed(issuing: IssuingService, clock: FakeClock, body: bytes) -> None:
    issuing.add_faults(answer_with(make_response(200, body)))
    async with make_client(issuing, clock) as client:
        with pytest.raises(AnswerMalformed, match="not JSON"):
            await client.usage()


async def test_the_repr_of_a_code_hides_its_token(issuing: IssuingService, clock: FakeClock) -> None:
    async with make_client(issuing, clock) as client:
        code = await client.codes.issue(ISSUE_REQUEST)
    assert code.broadcast_token.startswith("brd_")
    assert "brd_" not in repr(code)


async def test_a_problem_holds_every_detail_but_not_the_credential(issuing: IssuingService, clock: FakeClock) -> None:
    document = {
        "type": "/problems/validation_failed",
        "title": "T",
        "status": 422,
        "code": "validation_failed",
        "detail": f"no {CREDENTIAL} here",
        "request_id": "req-1",
        "errors": [{"location": "body", "pointer": "/name", "message": f"not {CREDENTIAL}"}, "nonsense"],
    }
    issuing.add_faults(
        answer_with(make_response(422, compact(document), Content_Type="application/problem+json; charset=utf-8"))
    )
    async with make_client(issuing, clock) as client:
        with pytest.raises(ApiProblem) as failure:
            await client.organizations.create("")
    seen = failure.value
    assert (seen.status, seen.code, seen.request_id, seen.retry_after_s) == (422, "validation_failed", "req-1", None)
    assert seen.detail == "no [credential] here"
    assert seen.errors == (RefusedField("body", "/name", "not [credential]"),)
    assert str(seen) == "validation_failed (422): no [credential] here; body /name: not [credential]"


@pytest.mark.parametrize(
    "response",
    [
        make_response(404, b"<html>server text</html>", Content_Type="text/html"),
        make_response(404, b"{", Content_Type="application/problem+json"),
        make_response(404, b"[]", Content_Type="application/problem+json"),
        make_response(404, compact({"code": "Not A Code\x1b[2J"}), Content_Type="application/problem+json"),
        make_response(404, b" " * 300_000, Content_Type="application/problem+json"),
        make_response(404),
    ],
    ids=["html", "broken", "no object", "no code", "endless", "empty"],
)
async def test_an_error_without_a_problem_document_becomes_a_problem(
    issuing: IssuingService, clock: FakeClock, response: bytes
) -> None:
    issuing.add_faults(answer_with(response))
    async with make_client(issuing, clock) as client:
        with pytest.raises(ApiProblem) as failure:
            await client.codes.show("xr_1")
    assert (failure.value.status, failure.value.code) == (404, "unknown")
    assert "server text" not in str(failure.value)


async def test_a_redirect_is_not_followed(issuing: IssuingService, clock: FakeClock) -> None:
    """That would send the credential to any address that the redirect names."""
    issuing.add_faults(answer_with(make_response(307, Location=f"{issuing.url}/v1/elsewhere")))
    async with make_client(issuing, clock) as client:
        with pytest.raises(AnswerMalformed, match="redirect"):
            await client.usage()
    assert issuing.routes == ["/v1/usage"]


async def test_a_compressed_answer_is_refused(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(answer_with(make_response(200, b"{}", Content_Encoding="gzip")))
    async with make_client(issuing, clock) as client:
        with pytest.raises(AnswerMalformed, match="encoded"):
            await client.usage()
    assert issuing.state.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "fault",
    [lose_request, answer_with(make_response(503)), answer_with(make_problem(429, "rate_limited"))],
    ids=["cut", "503", "429"],
)
async def test_a_call_that_is_safe_to_repeat_is_repeated(
    issuing: IssuingService, clock: FakeClock, fault: Fault
) -> None:
    issuing.add_faults(fault, make_answer({"campaign": CAMPAIGN, "revoked_count": 4, "packs_valid_until": None}))
    async with make_client(issuing, clock) as client:
        assert (await client.campaigns.stop(CAMPAIGN["id"])).revoked_count == 4
    assert len(issuing.routes) == 2


async def test_a_call_that_could_take_effect_twice_is_not_repeated(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(lose_request, answer_with(make_response(503)))
    async with make_client(issuing, clock) as client:
        with pytest.raises(ServiceUnreachable) as cut:
            await client.projects.create("P")
        with pytest.raises(ApiProblem):
            await client.projects.create("P")
    assert cut.value.was_sent
    assert len(issuing.routes) == 2


async def test_the_retries_of_a_call_are_limited(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(*[answer_with(make_response(500))] * 10)
    async with make_client(issuing, clock, attempts_max=3) as client:
        with pytest.raises(ApiProblem):
            await client.usage()
    assert len(issuing.routes) == 3


async def test_the_whole_answer_has_one_deadline(issuing: IssuingService) -> None:
    issuing.add_faults(stay_silent)
    async with make_client(issuing, FakeClock(), timeout_s=0.2, attempts_max=1) as client:
        with pytest.raises(ServiceUnreachable, match="in time"):
            await client.projects.create("P")


async def test_a_download_is_written_as_it_arrives(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(answer_with(make_response(503)), answer_with(make_response(200, b"x" * 100_000)))
    progress: list[tuple[int, int | None]] = []
    into = io.BytesIO()
    async with make_client(issuing, clock) as client:
        size = await client.codes.audio_bundle(["xr_1"], into, on_progress=lambda *numbers: progress.append(numbers))
    assert (size, len(into.getvalue())) == (100_000, 100_000)
    assert progress[-1] == (100_000, 100_000)
    assert issuing.state.requests[0].headers["accept"].startswith("application/zip,")
    assert json.loads(issuing.state.requests[0].body) == {"xr_ids": ["xr_1"], "protocol": 4}


async def test_a_partial_download_is_repeated_from_the_files_first_position(
    issuing: IssuingService, clock: FakeClock
) -> None:
    issuing.add_faults(
        answer_with(make_response(200, b"x" * 100_000)[:-50_000]), answer_with(make_response(200, b"yyy"))
    )
    into = io.BytesIO()
    into.write(b"before ")
    async with make_client(issuing, clock) as client:
        assert await client.codes.wav("xr_1", into) == 3
    assert into.getvalue() == b"before yyy"


async def test_a_partial_download_into_a_pipe_is_not_repeated(issuing: IssuingService, clock: FakeClock) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    issuing.add_faults(answer_with(make_response(200, b"x" * 100_000)[:-50_000]))
    into = Pipe()
    async with make_client(issuing, clock) as client:
        with pytest.raises(ServiceUnreachable):
            await client.audit_log.download(into, form="csv")
    assert len(into.getvalue()) < 100_000
    assert len(issuing.routes) == 1


async def test_a_partial_answer_is_not_an_answer(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(answer_with(make_response(200, b"x" * 100)[:-10]))
    async with make_client(issuing, clock, attempts_max=1) as client:
        with pytest.raises(ServiceUnreachable, match="completely"):
            await client.codes.show("xr_1")


async def test_a_closed_client_refuses_calls(issuing: IssuingService, clock: FakeClock) -> None:
    client = make_client(issuing, clock)
    await client.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await client.usage()
    blocking = Client(issuing.url, CREDENTIAL)
    blocking.close()
    blocking.close()
    with pytest.raises(RuntimeError, match="client is closed"):
        blocking.usage()
    assert issuing.routes == []
