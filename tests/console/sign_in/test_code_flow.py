"""Signing in at an identity provider: what the console asks for, and which answers it takes."""

import base64
import hashlib
import json
from urllib.parse import urlencode, urljoin, urlsplit

import pytest
from starlette.requests import Request
from starlette.responses import Response
from support.console.client import CONSOLE_URL, ConsoleClient
from support.console.login import CALLBACK, Desk, read_query
from support.identity.oidc_issuer import CLIENT_ID, refuse_grant
from support.processes.fake_clock import FakeClock
from support.processes.secret_leaks import find_leaks
from support.tenancy.people import People

from soundmark.console.forms import Form
from soundmark.console.return_path import PATH_CHARS_MAX
from soundmark.console.sign_in.attempts import ATTEMPTS_MAX, LIFETIME


async def test_a_person_signs_in_and_sees_the_page_that_they_wanted(
    visitors: ConsoleClient, desk: Desk, people: People
) -> None:
    tenant = await people.tenant_of("alice")
    path = f"/organizations/{tenant.organization_id}/projects"
    asked = await desk.begin(visitors, (await visitors.get(path)).location)

    answer = await desk.come_back(visitors, asked["state"])

    assert answer.location == path
    page = await visitors.follow(answer)
    assert page.status == 200
    assert "alice@example.org" in page.text


async def test_the_request_has_a_fresh_state_nonce_and_challenge(visitors: ConsoleClient, desk: Desk) -> None:
    first, second = await desk.begin(visitors), await desk.begin(visitors)

    assert first["client_id"] == CLIENT_ID
    assert first["redirect_uri"] == f"http://127.0.0.1:8083{CALLBACK}"
    assert (first["response_type"], first["code_challenge_method"]) == ("code", "S256")
    assert "openid" in first["scope"].split()
    for name in ("state", "nonce", "code_challenge"):
        assert len(first[name]) >= 43
        assert first[name] != second[name]


async def test_a_page_leads_to_the_provider_at_once_and_with_a_link(visitors: ConsoleClient, desk: Desk) -> None:
    """A redirect after a form would be stopped by `form-action` of our policy, at the provider's own redirects too."""
    page = await visitors.get("/sign-in", headers={"sec-fetch-site": "same-origin"})

    assert (page.status, page.headers["cache-control"]) == (200, "no-store")
    assert page.location.startswith(f"{desk.issuer.url}/auth?")
    assert page.find(".//main//a[@class='button']").get("href") == page.location
    assert "form-action 'self';" in page.headers["content-security-policy"]


@pytest.mark.parametrize("came_from", [{}, {"sec-fetch-site": "none"}, {"sec-fetch-site": "cross-site"}])
async def test_a_visit_that_no_form_of_ours_began_is_redirected(
    visitors: ConsoleClient, desk: Desk, came_from: dict[str, str]
) -> None:
    answer = await visitors.get("/sign-in", headers=came_from)

    assert (answer.status, answer.headers["cache-control"]) == (303, "no-store")
    assert answer.location.startswith(f"{desk.issuer.url}/auth?")


async def test_the_address_of_the_provider_is_no_markup(visitors: ConsoleClient, desk: Desk) -> None:
    await desk.begin(visitors)  # Reads the issuer's metadata.
    keys = visitors.console.sign_in.provider._keys  # type: ignore[union-attr]  # as if it were read like that
    address = "https://login.example/'\"><script>alert(1)</script>;url=javascript:alert(1)"
    keys._metadata = {**keys._metadata, "authorization_endpoint": address}
    page = await visitors.get("/sign-in", headers={"sec-fetch-site": "same-origin"})

    assert page.location.startswith(f"{address}?")
    assert page.find_all(".//body//script") == []


async def test_the_code_is_redeemed_with_the_verifier_of_the_challenge(visitors: ConsoleClient, desk: Desk) -> None:
    asked = await desk.begin(visitors)
    await desk.come_back(visitors, asked["state"], code="the-code")

    sent = desk.issuer.token_requests[0]
    challenge = base64.urlsafe_b64encode(hashlib.sha256(sent["code_verifier"].encode()).digest()).decode().rstrip("=")
    assert challenge == asked["code_challenge"]
    assert sent["code"] == "the-code"
    assert sent["redirect_uri"] == asked["redirect_uri"]
    assert sent["client_id"] == CLIENT_ID
    assert "authorization" not in sent, "a client without a secret shows none"


async def test_no_token_reaches_the_browser(visitors: ConsoleClient, desk: Desk) -> None:
    answer = await desk.sign_in(visitors)
    page = await visitors.follow(answer)

    given = json.dumps([answer.headers.multi_items(), page.headers.multi_items(), page.html])
    assert find_leaks(given) == set()
    assert all(token not in given for token in desk.good)
    for cookie in answer.headers.get_list("set-cookie"):
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie


async def test_two_tabs_may_sign_in_at_the_same_time(visitors: ConsoleClient, desk: Desk) -> None:
    first = await desk.begin(visitors, "/sign-in?return_to=/organizations%3Fcursor%3D1")
    second = await desk.begin(visitors, "/sign-in?return_to=/organizations%3Fcursor%3D2")

    assert (await desk.come_back(visitors, second["state"])).location == "/organizations?cursor=2"
    desk.nonce = first["nonce"]
    assert (await desk.come_back(visitors, first["state"])).location == "/organizations?cursor=1"


async def test_the_oldest_of_too_many_attempts_is_forgotten(
    visitors: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    for _ in range(ATTEMPTS_MAX + 3):
        await desk.begin(visitors)
        clock.advance(seconds=1)

    assert len([name for name in visitors.cookies if "attempt-" in name]) == ATTEMPTS_MAX
    assert (await desk.come_back(visitors, (await desk.begin(visitors))["state"])).location == "/organizations"


async def test_an_answer_that_comes_a_second_time_signs_nobody_in(visitors: ConsoleClient, desk: Desk) -> None:
    asked = await desk.begin(visitors)
    await desk.come_back(visitors, asked["state"])
    answer = await desk.come_back(visitors.other(), asked["state"])

    assert answer.location.startswith(desk.issuer.url), "without the browser's cookie it is nobody's attempt"
    assert len(desk.issuer.token_requests) == 1
    assert not any("attempt-" in name for name in visitors.cookies), "the attempt is used up"


async def test_an_answer_is_of_no_use_with_a_copy_of_the_cookies(visitors: ConsoleClient, desk: Desk) -> None:
    asked = await desk.begin(visitors)
    copy = visitors.other()
    copy.cookies.update(visitors.cookies)
    await desk.come_back(visitors, asked["state"])
    desk.issuer.answer_tokens = refuse_grant  # A code is redeemed once.
    page = await desk.come_back(copy, asked["state"])

    assert (page.status, page.trouble) == (400, "sign_in.lost")


async def test_the_state_of_one_attempt_does_not_open_another(visitors: ConsoleClient, desk: Desk) -> None:
    asked = await desk.begin(visitors)
    name = next(name for name in visitors.cookies if "attempt-" in name)
    forged = "f" + "x" * 43
    moved = f"soundmark-8083-attempt-{hashlib.sha256(forged.encode()).hexdigest()[:16]}"
    visitors.cookies.set(moved, visitors.cookies[name], domain="127.0.0.1", path="/")
    await desk.come_back(visitors, forged)

    assert desk.issuer.token_requests == []
    assert (await desk.come_back(visitors, asked["state"])).location == "/organizations"


async def test_the_back_button_after_signing_in_leads_to_the_first_page(visitors: ConsoleClient, desk: Desk) -> None:
    asked = await desk.begin(visitors)
    await desk.come_back(visitors, asked["state"])

    assert (await desk.come_back(visitors, asked["state"])).location == "/"
    assert (await visitors.get("/organizations")).status == 200


async def test_an_answer_to_an_old_attempt_starts_anew(visitors: ConsoleClient, desk: Desk, clock: FakeClock) -> None:
    asked = await desk.begin(visitors)
    clock.advance(seconds=LIFETIME.total_seconds())
    again = read_query((await desk.come_back(visitors, asked["state"])).location)
    desk.nonce = again["nonce"]

    assert (await desk.come_back(visitors, again["state"])).location == "/"


async def test_a_browser_without_cookies_is_not_sent_round_in_circles(visitors: ConsoleClient, desk: Desk) -> None:
    asked = await desk.begin(visitors)
    again = read_query((await desk.come_back(visitors.other(), asked["state"])).location)
    page = await desk.come_back(visitors.other(), again["state"])

    assert page.status == 400
    assert page.trouble == "sign_in.lost"
    assert page.find(".//a[@class='button']").get("href") == "/sign-in?return_to=/"


async def test_the_way_back_never_leads_elsewhere(
    visitors: ConsoleClient, desk: Desk, subtests: pytest.Subtests
) -> None:
    for path in [
        *("//evil.example", "/\\evil.example", "\\\\evil.example", "https://evil.example/", "https:evil.example"),
        *("javascript:alert(1)", "/\t/evil.example", "\t//evil.example", " //evil.example"),
        *("/%0d%0aset-cookie:a=b\r\nx", "evil.example", "/organizations\\..\\\\evil.example", "/sign-in"),
        *("/sign-in/step-up", "/sign-out", "/" + "a" * PATH_CHARS_MAX, ""),
    ]:
        with subtests.test(path=path):
            answer = await desk.sign_in(visitors, link_back_to(path))

            assert answer.location == "/"


@pytest.mark.parametrize(
    "path",
    [
        *("/%2f%2fevil.example", "/%5cevil.example", "/..//evil.example", "/.//evil.example"),
        *("/%2e%2e//evil.example", "/organizations?next=//evil.example"),
    ],
)
async def test_a_way_back_that_only_looks_like_another_host_stays_a_path_of_ours(
    visitors: ConsoleClient, desk: Desk, path: str
) -> None:
    answer = await desk.sign_in(visitors, link_back_to(path))

    assert answer.location == path
    assert urlsplit(urljoin(f"{CONSOLE_URL}{CALLBACK}", path)).netloc == urlsplit(CONSOLE_URL).netloc


async def test_a_selection_of_100_codes_is_whole_after_signing_in(
    visitors: ConsoleClient, desk: Desk, people: People
) -> None:
    tenant = await people.tenant_of("alice")
    xr_ids = [f"xr_{number:022d}" for number in range(100)]
    query = urlencode({"xr_ids": xr_ids, "protocol": "4"}, doseq=True)
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/codes/revoke?{query}"

    back = await desk.sign_in(visitors, (await visitors.get(path)).location)

    assert back.location == path
    listed = (await visitors.follow(back)).find_all(".//ul[@class='ids']/li//a")
    assert ["".join(link.itertext()) for link in listed] == xr_ids


async def test_everything_that_signing_in_keeps_fits_into_a_request_together(
    visitors: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    """The longest paths in as many attempts as there may be, the largest tokens, and a kept form."""
    desk.answer = {"access_token": "a" * 8 * 1024, "refresh_token": "r" * 8 * 1024}
    await desk.sign_in(visitors)
    for _ in range(ATTEMPTS_MAX):
        await desk.begin(visitors, link_back_to("/" + "a" * (PATH_CHARS_MAX - 1)))
        clock.advance(seconds=1)
    form = Form([("name", "n" * 4_900)])
    kept = Response()
    visitors.console.kept_forms.keep(Request({"type": "http", "headers": []}), kept, form, "/organizations", "alice")
    sent = [f"{name}={value}" for name, value in visitors.cookies.items()]
    sent += [cookie.partition(";")[0] for cookie in kept.headers.getlist("set-cookie")]

    assert len([cookie for cookie in sent if "attempt-" in cookie]) > ATTEMPTS_MAX
    assert len("; ".join(sent)) < 60 * 1024, "some of the 64 KiB of a request head are for the rest of it"


async def test_each_step_of_a_sign_in_has_the_security_headers(visitors: ConsoleClient, desk: Desk) -> None:
    asked = await desk.begin(visitors)
    for answer in (
        await visitors.get("/sign-in"),
        await desk.come_back(visitors, asked["state"]),
        await desk.come_back(visitors, "unknown"),
        await desk.come_back(visitors.other(), "r-unknown"),
    ):
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        assert answer.headers["referrer-policy"] == "same-origin", "the code in the URL is told to nobody"


def link_back_to(path: str) -> str:
    """Return the link to the sign-in page that asks to come back to `path`."""
    return "/sign-in?return_to=" + "".join(f"%{byte:02x}" for byte in path.encode())
