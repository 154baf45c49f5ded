"""Answers that were lost: nothing is issued twice, and what was issued is found again."""

import json
from datetime import timedelta
from typing import Any

import pytest
from support.console.client import ConsoleClient, MakeFields, PageAnswer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant, make_second_project

from soundmark.kit.text.timestamps import format_timestamp

TUPLE = ("idempotency_key", "route", "body", "begun_at")
ISSUE, RECOVER = "/v1/codes", "/v1/codes/recover"


async def _issued(tenant: Tenant) -> list[str]:
    return [code["xr_id"] for code in await tenant.list_codes()]


async def _lose_the_answer(operator: ConsoleClient, codes: str, fields: dict[str, Any]) -> PageAnswer:
    is_batch = fields["count"] != "1"
    paths = (f"{ISSUE}/batch", f"{ISSUE}/batch/recover") if is_batch else (ISSUE, RECOVER)
    for path in paths:
        operator.core.lose_answer(f"POST {path}")
    page = await operator.submit(f"{codes}/issue", fields)
    operator.core.recover()
    return page


def _tuple_of(page: PageAnswer) -> dict[str, str]:
    return {name: page.value(name) for name in TUPLE}


@pytest.mark.parametrize("count", ["1", "2"])
async def test_a_lost_answer_is_asked_for_and_found(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields, count: str
) -> None:
    page = await _lose_the_answer(operator, codes, fields(count=count))

    assert page.status == 503
    assert page.trouble == "core_unreachable"
    assert "It is not known whether this request succeeded" in page.text
    assert page.value("idempotency_key") == "key-of-the-tests"
    assert page.value("issuer") == "Radio Nordlicht"
    answer = await operator.submit(f"{codes}/recover", _tuple_of(page))

    assert answer.location.endswith("#answered=key-of-the-tests")
    assert len(await _issued(tenant)) == int(count)
    call = operator.core.calls[-1]
    assert call.url.path.endswith("/recover")
    assert json.loads(call.content)["expires_at"].endswith("06-01T12:00:00.000Z")
    assert call.content.decode() == _tuple_of(page)["body"], "exactly the original body"


async def test_the_same_form_sent_again_issues_once(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    """As a person without scripts does, who sees only that the answer is missing."""
    page = await _lose_the_answer(operator, codes, fields())

    again = await operator.submit(f"{codes}/issue", {**fields(), **_tuple_of(page)})

    [xr_id] = await _issued(tenant)
    assert again.location == f"{codes}/{xr_id}#answered=key-of-the-tests"


async def test_a_request_that_never_arrived_is_issued_when_it_is_sent_again(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    operator.core.lose(f"POST {ISSUE}")
    page = await operator.submit(f"{codes}/issue", fields())
    operator.core.recover()
    assert page.trouble == "core_unreachable"
    assert page.find(".//section[@id='kept-requests']").get("data-settled") is None, "an earlier request may exist"

    await operator.submit(f"{codes}/issue", fields())

    assert len(await _issued(tenant)) == 1


async def test_a_changed_form_is_not_sent_while_the_answer_is_missing(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    kept = _tuple_of(await _lose_the_answer(operator, codes, fields()))

    page = await operator.submit(f"{codes}/issue", {**fields(issuer="Radio Süd"), **kept})

    assert page.status == 422
    assert "Ask for it before you change the request" in page.text
    assert _tuple_of(page) == kept
    assert len(await _issued(tenant)) == 1


async def test_what_was_never_issued_is_issued_only_on_request(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    prepared = (await operator.submit(f"{codes}/issue/tuple", fields())).response.json()
    kept = {"idempotency_key": "key-of-the-tests", **prepared}

    page = await operator.submit(f"{codes}/recover", kept)
    assert page.status == 404
    assert page.trouble == "code_issue_not_found"
    assert "This request never issued anything." in page.text
    assert "https://example.org/offer" in page.text
    assert await _issued(tenant) == []

    answer = await operator.submit(f"{codes}/recover", {**_tuple_of(page), "issue": "yes"})
    assert [answer.location.partition("#")[0]] == [f"{codes}/{xr_id}" for xr_id in await _issued(tenant)]


async def test_the_prepared_tuple_is_what_the_form_then_sends(
    operator: ConsoleClient, codes: str, fields: MakeFields, clock: FakeClock
) -> None:
    now = clock.freeze()
    prepared = (await operator.submit(f"{codes}/issue/tuple", fields(count="2"))).response.json()
    assert prepared["route"] == "/v1/codes/batch"
    assert prepared["begun_at"] == format_timestamp(now)

    await operator.submit(f"{codes}/issue", fields(count="2"))

    [call] = [call for call in operator.core.calls if call.url.path == "/v1/codes/batch"]
    assert call.content.decode() == prepared["body"]
    assert "csrf" not in json.dumps(prepared)
    assert (await operator.submit(f"{codes}/issue/tuple", fields(count="0"))).status == 422


async def test_a_refusal_after_a_lost_answer_settles_the_request(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields, rival: Rival
) -> None:
    prepared = (await operator.submit(f"{codes}/issue/tuple", fields())).response.json()
    await tenant.make_quota(rival, 0)

    kept = {"idempotency_key": "key-of-the-tests", **prepared, "issue": "yes"}
    page = await operator.submit(f"{codes}/recover", kept)

    assert page.trouble == "quota_exceeded"
    assert page.find(".//section[@id='kept-requests']").get("data-settled") == "key-of-the-tests"
    assert "Nothing was issued by this request." in page.text


async def test_a_request_of_23_hours_ago_is_not_sent(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields, clock: FakeClock
) -> None:
    """A repeat could issue a second time, because the receipt is kept for 24 hours."""
    prepared = (await operator.submit(f"{codes}/issue/tuple", fields())).response.json()
    old = format_timestamp(clock.now() - timedelta(hours=23))
    before = len(operator.core.calls)

    kept = {"idempotency_key": "key-of-the-tests", **prepared, "begun_at": old, "issue": "yes"}
    page = await operator.submit(f"{codes}/recover", kept)

    assert page.status == 422
    assert "This request is more than 23 hours old" in page.text
    assert all(call.url.path not in {ISSUE, RECOVER} for call in operator.core.calls[before:])
    assert await _issued(tenant) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"route": "/v1/organizations"},
        {"body": ""},
        {"body": "[]"},
        {"body": "{"},
        {"body": "[" * 50_000},
        {"begun_at": "yesterday"},
        {"begun_at": ""},
        {"idempotency_key": "short"},
    ],
)
async def test_a_tuple_that_no_browser_of_ours_keeps_is_refused(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields, changes: dict[str, str]
) -> None:
    prepared = (await operator.submit(f"{codes}/issue/tuple", fields())).response.json()

    kept = {"idempotency_key": "key-of-the-tests", **prepared, "issue": "yes", **changes}
    page = await operator.submit(f"{codes}/recover", kept)

    assert page.status == 400
    assert page.trouble == "form_malformed"
    assert await _issued(tenant) == []


async def test_a_request_of_another_project_is_not_sent_from_here(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    other = await make_second_project(tenant)
    prepared = (await operator.submit(f"{codes}/issue/tuple", fields())).response.json()

    there = codes.replace(tenant.project_id, other.project_id)
    kept = {"idempotency_key": "key-of-the-tests", **prepared, "issue": "yes"}
    assert (await operator.submit(f"{there}/recover", kept)).trouble == "form_malformed"
    assert await _issued(tenant) == []


async def test_a_hostile_request_is_shown_as_text(operator: ConsoleClient, codes: str, fields: MakeFields) -> None:
    hostile = "</pre><script>alert(1)</script>\u202e"
    changes = {"issuer": hostile, "mode": "json", "type": hostile, "action": "a", "resource": "{}"}
    prepared = (await operator.submit(f"{codes}/issue/tuple", fields(**changes))).response.json()

    page = await operator.submit(f"{codes}/recover", {"idempotency_key": "key-of-the-tests", **prepared})

    assert "</pre><script>alert(1)</script>\\u202e" in page.text
    assert not page.find_all(".//body//script")
    assert page.value("body") == prepared["body"]


async def test_core_that_is_gone_keeps_the_form_and_its_key(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    operator.core.go_down()
    page = await operator.submit(f"{codes}/issue", fields())
    operator.core.recover()

    assert page.status == 503
    assert page.trouble == "core_unreachable"
    assert {name: page.value(name) for name in fields() if name != "mode"} == {
        name: value for name, value in fields().items() if name != "mode"
    }
    await operator.submit(f"{codes}/issue", fields())
    assert len(await _issued(tenant)) == 1


async def test_the_page_without_a_request_says_where_requests_are_kept(operator: ConsoleClient, codes: str) -> None:
    page = await operator.get(f"{codes}/recover")

    assert page.status == 200
    assert "keeps each request to issue Codes until you have seen its answer" in page.text
