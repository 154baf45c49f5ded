"""Stepping up to a second factor: the same person comes back to the form that they had filled in, and sends it."""

import json
from typing import Any

import pytest
from support.console.client import ConsoleClient, PageAnswer
from support.console.login import Desk, read_query
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People


async def meet_the_second_factor(person: ConsoleClient, name: str = "Radio") -> PageAnswer:
    """Send a form that needs a second factor, and return the page that says so."""
    token = (await person.get("/organizations")).value("csrf_token")
    page = await person.submit("/organizations", {"name": name, "csrf_token": token})
    assert (page.status, page.trouble) == (403, "sign_in.second_factor_needed")
    return page


def find_link(page: PageAnswer) -> str:
    return page.find(".//a[@class='button']").get("href") or ""


async def names_of(people: People, subject_id: str = "alice") -> list[str]:
    data = (await people.person(subject_id).get("/v1/organizations")).json["data"]
    return [each["name"] for each in data]


async def test_a_person_comes_back_to_the_form_and_sends_it(person: ConsoleClient, desk: Desk, people: People) -> None:
    page = await meet_the_second_factor(person, "Radio “Ünï” <One>")
    desk.access = desk.identity = {"acr": "2"}
    back = await desk.sign_in(person, find_link(page))
    assert back.location == "/organizations"
    form = await person.follow(back)

    assert form.value("name") == "Radio “Ünï” <One>"
    assert "nothing has been sent yet" in form.text
    assert await names_of(people) == [], "nothing is sent before the person presses the button"
    sent = await person.submit("/organizations", {name: form.value(name) for name in ("name", "csrf_token")})
    assert sent.status == 303
    assert await names_of(people) == ["Radio “Ünï” <One>"]
    assert (await person.get("/organizations")).value("name") == "", "the form is kept no longer than it is needed"


async def test_a_person_comes_back_from_a_download_to_the_page_that_offers_it(
    person: ConsoleClient, people: People
) -> None:
    """A download leads to no page: the browser would go on showing the provider's."""
    tenant = await people.tenant_of("alice")
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}"
    page = await person.get(f"{path}/export")

    assert page.trouble == "sign_in.second_factor_needed"
    assert find_link(page) == f"/sign-in/step-up?return_to={path}/settings"


async def test_an_essential_claim_asks_for_the_second_factor(person: ConsoleClient, desk: Desk) -> None:
    asked = await desk.begin(person, find_link(await meet_the_second_factor(person)))

    assert json.loads(asked["claims"]) == {"id_token": {"acr": {"essential": True, "values": ["2"]}}}
    assert "acr_values" not in asked, "a provider may take this wish for the demand"


async def test_a_provider_that_knows_no_claims_parameter_gets_a_hint(person: ConsoleClient, desk: Desk) -> None:
    sign_in: Any = person.console.sign_in
    sign_in.provider._keys._metadata = {**sign_in.provider._keys._metadata, "claims_parameter_supported": False}
    asked = await desk.begin(person, "/sign-in/step-up")

    assert asked["acr_values"] == "2"
    assert "claims" in asked


async def test_an_ordinary_login_asks_for_no_second_factor(person: ConsoleClient, desk: Desk) -> None:
    asked = await desk.begin(person, "/sign-in")

    assert "claims" not in asked
    assert "acr_values" not in asked


async def test_the_whole_session_is_replaced(person: ConsoleClient, desk: Desk) -> None:
    before = dict(person.cookies)["soundmark-8083-session"]
    first = (await person.get("/organizations")).value("csrf_token")
    desk.access = desk.identity = {"acr": "2"}
    await desk.sign_in(person, "/sign-in/step-up")
    session = person.console.sessions.jar.read("session", dict(person.cookies))
    old = person.console.sessions.jar.read("session", {"soundmark-8083-session": before})

    for name in ("csrf_token", "access_token", "refresh_token", "started_at"):
        assert session[name] != old[name], name
    assert session["has_second_factor"] is True
    assert (await person.get("/organizations")).value("csrf_token") != first


async def test_another_person_does_not_take_the_session_over(person: ConsoleClient, desk: Desk, people: People) -> None:
    page = await meet_the_second_factor(person)
    desk.subject_id, desk.access, desk.identity = "mallory", {"acr": "2"}, {"acr": "2"}
    refused = await desk.sign_in(person, find_link(page))

    assert (refused.status, refused.trouble) == (403, "sign_in.another_person")
    shown = await person.get("/organizations")
    assert "alice@example.org" in shown.text
    assert await names_of(people, "mallory") == []


@pytest.mark.parametrize("identity", [{"acr": "1"}, {"acr": None}, {"acr": "0"}, {"acr": 2}, {"acr": ["2"]}])
async def test_a_person_without_a_second_factor_gets_out_of_the_loop(
    person: ConsoleClient, desk: Desk, identity: dict[str, Any]
) -> None:
    page = await meet_the_second_factor(person)
    desk.identity = identity
    told = await desk.sign_in(person, find_link(page))

    assert (told.status, told.trouble) == (403, "sign_in.no_second_factor")
    assert "location" not in told.headers
    assert "Set up a second factor" in told.text
    assert (await person.get("/organizations")).status == 200, "everything else still works"


@pytest.mark.parametrize("error", ["access_denied", "unmet_authentication_requirements", "login_required"])
async def test_a_provider_that_cannot_reach_the_second_factor_ends_the_attempt(
    person: ConsoleClient, desk: Desk, error: str
) -> None:
    asked = await desk.begin(person, find_link(await meet_the_second_factor(person)))
    told = await desk.come_back(person, asked["state"], error=error)

    assert (told.status, told.trouble) == (403, "sign_in.no_second_factor")
    assert not any("attempt-" in name for name in person.cookies)


async def test_an_otp_method_is_a_second_factor_too(person: ConsoleClient, desk: Desk) -> None:
    desk.access = desk.identity = {"acr": None, "amr": ["pwd", "otp"]}

    assert (await desk.sign_in(person, "/sign-in/step-up?return_to=/organizations")).location == "/organizations"


async def test_a_second_factor_that_core_does_not_see_is_not_asked_for_again(
    person: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    page = await meet_the_second_factor(person)
    desk.identity = {"acr": "2"}  # The access token still says 1.
    form = await person.follow(await desk.sign_in(person, find_link(page)))
    sent = {name: form.value(name) for name in ("name", "csrf_token")}
    told = await person.submit("/organizations", sent)

    assert (told.status, told.trouble) == (403, "sign_in.second_factor_unseen")
    assert told.find_all(".//a[@class='button']") == []
    clock.advance(minutes=2)
    assert (await person.submit("/organizations", sent)).trouble == "sign_in.second_factor_needed", (
        "a second factor may have been good for a short time only"
    )


async def test_an_error_at_the_sign_in_page_is_a_page(visitors: ConsoleClient, desk: Desk) -> None:
    for error, status, trouble in (
        ("access_denied", 403, "sign_in.declined"),
        ("<script>", 403, "sign_in.declined"),
        ("server_error", 503, "identity_provider_unavailable"),
        ("temporarily_unavailable", 503, "identity_provider_unavailable"),
    ):
        asked = await desk.begin(visitors)
        page = await desk.come_back(visitors, asked["state"], error=error, error_description="<b>no</b>")
        assert (page.status, page.trouble) == (status, trouble)
        assert "<script>" not in page.html.replace('<script type="module"', "")
        assert "no</b>" not in page.html


async def test_an_answer_without_a_code_is_refused(visitors: ConsoleClient, desk: Desk) -> None:
    asked = await desk.begin(visitors)
    page = await desk.come_back(visitors, asked["state"], foo="bar")

    assert (page.status, page.trouble) == (403, "sign_in.answer_refused")


@pytest.mark.parametrize("answer", [{"code": "a-code"}, {"error": "access_denied"}])
@pytest.mark.parametrize("issuer", ["https://other.example", "", None])
async def test_an_answer_of_another_issuer_is_refused(
    visitors: ConsoleClient, desk: Desk, issuer: str | None, answer: dict[str, str]
) -> None:
    """A provider that says that its answers name it does so in every one: RFC 9207, section 2.4."""
    desk.issuer.discovery = {"authorization_response_iss_parameter_supported": True}
    asked = await desk.begin(visitors)
    named = {} if issuer is None else {"iss": issuer}
    page = await desk.come_back(visitors, asked["state"], **named, **answer)

    assert (page.status, page.trouble) == (403, "sign_in.answer_refused")
    assert desk.issuer.token_requests == [], "the code went nowhere"


@pytest.mark.parametrize("is_announced", [True, False])
async def test_an_answer_that_names_its_issuer_signs_the_person_in(
    visitors: ConsoleClient, desk: Desk, is_announced: bool
) -> None:
    desk.issuer.discovery = {"authorization_response_iss_parameter_supported": is_announced}
    asked = await desk.begin(visitors)
    answer = await desk.come_back(visitors, asked["state"], code="a-code", iss=desk.issuer.url)

    assert answer.location == "/organizations"


async def test_an_issuer_that_cannot_be_read_leaves_the_answer_unjudged(visitors: ConsoleClient, desk: Desk) -> None:
    asked = await desk.begin(visitors)
    sign_in: Any = visitors.console.sign_in
    sign_in.provider._keys._keys = {}  # As in another process, which has read nothing yet.
    async with desk.issuer.down():
        page = await desk.come_back(visitors, asked["state"], error="access_denied")

    assert (page.status, page.trouble) == (503, "identity_provider_unavailable")


async def test_a_step_up_after_the_session_ended_takes_any_person(visitors: ConsoleClient, desk: Desk) -> None:
    desk.identity = {"acr": "2"}

    assert (await desk.sign_in(visitors, "/sign-in/step-up?return_to=/")).location == "/"


async def test_an_operator_is_never_asked_for_a_second_factor(operator: ConsoleClient) -> None:
    answer = await operator.submit("/organizations", {"name": "Radio"})

    assert answer.status == 303


async def test_the_language_of_the_page_is_asked_of_the_provider(visitors: ConsoleClient) -> None:
    french = visitors.other(language="fr")

    assert read_query((await french.get("/sign-in")).location)["ui_locales"] == "fr"
