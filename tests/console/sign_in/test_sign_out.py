"""Signing out: here and at the identity provider, without a name in a URL."""

from support.console_client import ConsoleClient
from support.console_login import Desk, read_query
from support.misbehaving_server import answer
from support.oidc_issuer import CLIENT_ID, TOKEN


async def test_a_person_is_signed_out_here_and_at_the_provider(person: ConsoleClient, desk: Desk) -> None:
    token = (await person.get("/organizations")).value("csrf_token")
    left = await person.submit("/sign-out", {"csrf_token": token})

    assert left.location.startswith(f"{desk.issuer.url}/logout?")
    asked = read_query(left.location)
    assert asked.pop("ui_locales") == "en"
    assert asked == {
        "client_id": CLIENT_ID,
        "post_logout_redirect_uri": "http://127.0.0.1:8083/sign-in/signed-out",
    }
    assert "alice" not in left.location
    assert not [name for name in person.cookies if "session" in name]
    page = await person.get("/sign-in/signed-out")
    assert page.status == 200
    assert page.find(".//a[@class='button']").get("href") == "/sign-in", "nobody is signed in again by themselves"


async def test_a_provider_without_such_a_page_ends_the_session_here(person: ConsoleClient, desk: Desk) -> None:
    desk.issuer.discovery = {"end_session_endpoint": None}
    person.console.sign_in.provider._keys._metadata = {}  # type: ignore[union-attr]  # as if it were read like that
    token = (await person.get("/organizations")).value("csrf_token")

    assert (await person.submit("/sign-out", {"csrf_token": token})).location == "/sign-in/signed-out"


async def test_a_page_of_another_origin_than_the_issuers_is_reached_with_a_link(person: ConsoleClient) -> None:
    """Browsers apply `form-action` of our policy to where a form leads in the end."""
    token = (await person.get("/organizations")).value("csrf_token")
    keys = person.console.sign_in.provider._keys  # type: ignore[union-attr]  # as if it were read like that
    keys._metadata = {**keys._metadata, "end_session_endpoint": "https://sessions.example/logout"}
    page = await person.submit("/sign-out", {"csrf_token": token})

    assert page.status == 200
    assert "You are still signed in at sessions.example." in page.text
    link = page.find(".//main//a[@rel='noreferrer']").get("href")
    assert link.startswith("https://sessions.example/logout?client_id=")
    assert not [name for name in person.cookies if "session" in name]
    assert page.find_all(".//form[@action='/sign-out']") == []


async def test_another_site_can_sign_nobody_out(person: ConsoleClient) -> None:
    token = (await person.get("/organizations")).value("csrf_token")
    page = await person.submit("/sign-out", {"csrf_token": token}, headers={"origin": "https://evil.example"})
    assert (page.status, page.trouble) == (403, "form_from_elsewhere")
    page = await person.submit("/sign-out", {"csrf_token": "of-another-session"})
    assert (page.status, page.trouble) == (403, "form_outdated")
    assert (await person.get("/sign-out")).status == 404

    assert (await person.get("/organizations")).status == 200


async def test_signing_out_needs_no_valid_token(person: ConsoleClient, desk: Desk) -> None:
    token = (await person.get("/organizations")).value("csrf_token")
    desk.issuer.clock.advance(hours=1)
    desk.issuer.behaviour[TOKEN] = answer(b"{}", status="500 Internal Server Error")

    assert (await person.submit("/sign-out", {"csrf_token": token})).location.startswith(desk.issuer.url)
    assert not [name for name in person.cookies if "session" in name]
