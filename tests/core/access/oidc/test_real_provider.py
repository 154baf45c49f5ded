"""People who sign in with a third-party provider: only its access tokens are accepted."""

from collections.abc import AsyncIterator, Iterator

import pytest
from support.api.core_client import Api
from support.api.core_settings import core_settings
from support.identity.oidc_access import is_accepted
from support.identity.oidc_issuer import CLIENT_ID
from support.identity.real_oidc_provider import NAMED_LIKE_THE_CONSOLE, Browser, read_part, running_providers
from support.processes.running_apps import running_core

from soundmark.core.access.oidc import OidcAccess
from soundmark.core.domain.tenancy.scope import User
from soundmark.core.problems import EmailNotVerified
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.secret import Secret

# One process with all four providers serves the whole file.
pytestmark = pytest.mark.xdist_group("real provider")


@pytest.fixture(scope="module")
def issuers() -> Iterator[dict[str, str]]:
    """The identity providers that are under test."""
    with running_providers() as running:
        yield running


@pytest.fixture(scope="module", params=["RS256", "PS256", "ES256", "EdDSA"])
def browser(issuers: dict[str, str], request: pytest.FixtureRequest) -> Browser:
    """A person's browser at the provider, with each algorithm."""
    return Browser(issuers[request.param], request.param)


@pytest.fixture
async def access(browser: Browser) -> AsyncIterator[OidcAccess]:
    """The reader of access tokens."""
    made = OidcAccess(browser.issuer, CLIENT_ID, SystemClock())
    yield made
    await made.aclose()


@pytest.fixture
async def core(browser: Browser, database_url: Secret) -> AsyncIterator[Api]:
    """A Core whose people sign in with that provider, and where nobody has signed in yet."""
    async with running_core(core_settings(database_url, oidc_issuer=browser.issuer, oidc_client_id=CLIENT_ID)) as api:
        yield api.other(token=None)


@pytest.fixture(scope="module")
async def other_tokens(browser: Browser) -> dict[str, str]:
    """Everything that the provider issues besides access tokens for our client, after a login with a second factor."""
    by_code = await browser.sign_in("root")
    opaque = await browser.sign_in("root", resource=None)
    implicit, hybrid, both = [
        await browser.sign_in("root", response_type=flow) for flow in ("id_token", "code id_token", "id_token token")
    ]
    of_other = await browser.sign_in("root", client_id="other")
    of_other_for_us = await browser.sign_in("root", client_id="other", resource=NAMED_LIKE_THE_CONSOLE)
    of_machine = await browser.sign_in_as_machine()
    of_machine_for_us = await browser.sign_in_as_machine(NAMED_LIKE_THE_CONSOLE)
    return {
        "ID token": by_code["id_token"],
        "ID token of the implicit flow": implicit["id_token"],
        "ID token of the hybrid flow": hybrid["id_token"],
        "ID token with at_hash": both["id_token"],
        "refreshed ID token": (await browser.refresh(by_code))["id_token"],
        "ID token of another client": of_other["id_token"],
        "signed userinfo": await browser.userinfo(opaque),
        "refresh token": hybrid["refresh_token"],
        "opaque access token": opaque["access_token"],
        "access token of another client": of_other["access_token"],
        "access token of another client whose audience is spelled like ours": of_other_for_us["access_token"],
        "access token of a machine": of_machine["access_token"],
        "access token of a machine whose audience is spelled like our client": of_machine_for_us["access_token"],
    }


async def test_an_access_token_of_our_client_names_the_person(browser: Browser, access: OidcAccess) -> None:
    """The token has the form of RFC 9068, without any claim of Keycloak."""
    login = await browser.sign_in("alice")
    header, claims = read_part(login["access_token"], 0), read_part(login["access_token"], 1)
    assert (header["typ"], header["alg"], claims["client_id"]) == ("at+jwt", browser.alg, CLIENT_ID)
    assert claims["aud"] == "https://api.soundmark.test/"
    assert not claims.keys() & {"typ", "azp"}
    alice = User("alice", "alice@example.org", has_mfa=True, is_platform_admin=False)
    assert await access.user_of(login["access_token"]) == alice
    assert await access.user_of((await browser.refresh(login))["access_token"]) == alice


async def test_it_shows_the_second_factor_and_the_platform_role(browser: Browser, access: OidcAccess) -> None:
    weak = await access.user_of((await browser.sign_in("alice", has_mfa=False))["access_token"])
    assert (weak.has_mfa, weak.is_platform_admin) == (False, False)
    root = await access.user_of((await browser.sign_in("root"))["access_token"])
    assert (root.has_mfa, root.is_platform_admin) == (True, True)


async def test_a_person_without_a_verified_address_is_refused(browser: Browser, access: OidcAccess) -> None:
    with pytest.raises(EmailNotVerified):
        await access.user_of((await browser.sign_in("unverified"))["access_token"])


async def test_no_other_token_of_the_provider_is_accepted(access: OidcAccess, other_tokens: dict[str, str]) -> None:
    assert {name for name, token in other_tokens.items() if await is_accepted(access, token)} == set()


async def test_an_id_token_of_this_provider_lacks_nothing_but_the_mark(
    browser: Browser, access: OidcAccess, other_tokens: dict[str, str]
) -> None:
    """It is signed by the issuer, for our client, with a verified address, a second factor and the platform role."""
    for name in ("ID token", "ID token of the implicit flow", "signed userinfo"):
        header, claims = await access._verify(other_tokens[name])
        assert header.get("typ") in {None, "JWT"}
        assert not claims.keys() & {"typ", "azp", "client_id", "at_hash"}
        assert (claims["iss"], claims["aud"], claims["acr"]) == (browser.issuer, CLIENT_ID, "2")
        assert claims["email_verified"] is True
        assert claims["realm_access"] == {"roles": ["svc_platform_admin"]}
        assert claims["exp"] > claims["iat"]


async def test_signed_in_people_can_act(browser: Browser, core: Api) -> None:
    async def signed_in(subject_id: str, *, has_mfa: bool = True) -> Api:
        return core.other(token=(await browser.sign_in(subject_id, has_mfa=has_mfa))["access_token"])

    alice, weak, root = await signed_in("alice"), await signed_in("alice", has_mfa=False), await signed_in("root")
    organization_id = await alice.make_organization()
    (listed,) = (await weak.get("/v1/organizations")).json["data"]
    assert (listed["id"], listed["role"]) == (organization_id, "owner")
    refused = await weak.post("/v1/organizations", json={"name": "Radio Nordlicht"})
    assert (refused.status, refused.code) == (403, "mfa_required")
    assert (await root.get("/v1/organizations")).json["data"] == []
    assert (await root.get("/v1/platform/settings")).status == 200
    for nobody in (alice, await signed_in("root", has_mfa=False)):
        assert (await nobody.get("/v1/platform/settings")).status == 403
    unverified = await (await signed_in("unverified")).get("/v1/organizations")
    assert (unverified.status, unverified.code) == (403, "email_not_verified")


async def test_their_other_tokens_are_refused(core: Api, other_tokens: dict[str, str]) -> None:
    for name, token in other_tokens.items():
        answer = await core.other(token=token).get("/v1/organizations")
        assert (answer.status, answer.code, name) == (401, "unauthenticated", name)
