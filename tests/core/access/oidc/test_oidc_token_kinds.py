"""The kind of an access token: how its issuer marked it, and which client it was issued to."""

from typing import Any

import pytest
from support.identity.oidc_access import is_accepted
from support.identity.oidc_issuer import CLIENT_ID, OidcIssuer

from soundmark.core.access.oidc import OidcAccess

ACCESS = "at+jwt"
ABSENT = ...  # The name is the same in every process, as a test id must be.

# The header `typ`, the claim `typ`, and whether together they mark an access token.
MARKS: list[tuple[Any, Any, bool]] = [
    (ACCESS, ABSENT, True),
    ("AT+JWT", ABSENT, True),
    ("application/at+jwt", ABSENT, True),
    ("Application/At+Jwt", ABSENT, True),
    (ACCESS, "Bearer", True),
    ("JWT", "Bearer", True),
    (ABSENT, "Bearer", True),
    (7, "Bearer", True),
    ("JWT", ABSENT, False),
    (ABSENT, ABSENT, False),
    ("", ABSENT, False),
    (None, ABSENT, False),
    (7, ABSENT, False),
    ([ACCESS], ABSENT, False),
    ({"at+jwt": 1}, ABSENT, False),
    ("at-jwt", ABSENT, False),
    ("at+jwt ", ABSENT, False),
    (" at+jwt", ABSENT, False),
    ("at+jwt;x=y", ABSENT, False),
    ("jwt+at", ABSENT, False),
    ("text/at+jwt", ABSENT, False),
    ("application/application/at+jwt", ABSENT, False),
    ("/at+jwt", ABSENT, False),
    ("id+jwt", ABSENT, False),
    ("logout+jwt", ABSENT, False),
    ("token-introspection+jwt", ABSENT, False),
    ("dpop+jwt", ABSENT, False),
    # A claim that contradicts the header decides.
    (ACCESS, "ID", False),
    (ACCESS, "Refresh", False),
    (ACCESS, "Offline", False),
    (ACCESS, "DPoP", False),
    (ACCESS, "bearer", False),
    (ACCESS, "BEARER", False),
    (ACCESS, "", False),
    (ACCESS, None, False),
    (ACCESS, ["Bearer"], False),
    (ACCESS, {"Bearer": 1}, False),
    (ACCESS, True, False),
    ("JWT", "ID", False),
    ("JWT", "Refresh", False),
    ("JWT", "Bearer ", False),
]


def marked(issuer: OidcIssuer, header: Any, claim: Any) -> str:
    """Return a token for our client that is marked like this, and valid in every other way."""
    claims = {name: value for name, value in issuer.claims().items() if name != "typ"}
    if claim is not ABSENT:
        claims["typ"] = claim
    return issuer.signed_as({"typ": header} if header is not ABSENT else {}, claims)


async def test_the_issuers_mark_decides_the_kind_of_a_token(
    access: OidcAccess, issuer: OidcIssuer, subtests: pytest.Subtests
) -> None:
    for header, claim, is_access in MARKS:
        with subtests.test(header=header, claim=claim, is_access=is_access):
            assert await is_accepted(access, marked(issuer, header, claim)) is is_access


async def test_an_id_token_is_refused_whatever_it_leaves_out(
    access: OidcAccess, issuer: OidcIssuer, subtests: pytest.Subtests
) -> None:
    """Its `aud` is our client; with a second factor and a verified address it would be a complete login."""
    for left_out in [(), ("at_hash",), ("nonce",), ("auth_time",), ("at_hash", "nonce", "auth_time")]:
        for typ in [None, "ID"]:
            with subtests.test(left_out=left_out, typ=typ):
                own = {"at_hash": "x", "nonce": "n", "auth_time": int(issuer.clock.unix_s())}
                of_id = {name: value for name, value in own.items() if name not in left_out}
                for azp in (CLIENT_ID, None):
                    assert not await is_accepted(access, issuer.token(typ=typ, aud=CLIENT_ID, azp=azp, **of_id))


async def test_a_signed_userinfo_is_refused(access: OidcAccess, issuer: OidcIssuer) -> None:
    """OpenID Connect Core, section 5.3.2: it is signed, has an issuer and an audience, and may have times."""
    for changes in ({}, {"exp": None, "iat": None}, {"acr": None}):
        userinfo = issuer.claims(typ=None, azp=None, aud=CLIENT_ID, **changes)
        assert not await is_accepted(access, issuer.signed(userinfo))


@pytest.mark.parametrize("typ", ["Refresh", "Offline"])
async def test_a_refresh_token_is_refused(access: OidcAccess, issuer: OidcIssuer, typ: str) -> None:
    assert not await is_accepted(access, issuer.token(typ=typ, aud=issuer.url))
    assert not await is_accepted(access, issuer.token(typ=None, aud=issuer.url))


# The client. The first of `azp`, `client_id` and `aud` that a token has decides on its own.
CLIENTS: list[tuple[dict[str, Any], bool]] = [
    ({"azp": CLIENT_ID}, True),
    ({"azp": CLIENT_ID, "client_id": "other", "aud": "other"}, True),
    ({"client_id": CLIENT_ID}, True),
    ({"client_id": CLIENT_ID, "aud": "https://api.example.org"}, True),
    ({"aud": CLIENT_ID}, True),
    ({"aud": ["account", CLIENT_ID]}, True),
    ({"azp": "other", "client_id": CLIENT_ID, "aud": CLIENT_ID}, False),
    ({"azp": None, "client_id": CLIENT_ID, "aud": CLIENT_ID}, False),
    ({"azp": "", "aud": CLIENT_ID}, False),
    ({"azp": [CLIENT_ID], "aud": CLIENT_ID}, False),
    ({"client_id": "other", "aud": CLIENT_ID}, False),
    ({"client_id": "other", "aud": [CLIENT_ID, "other"]}, False),
    ({"client_id": None, "aud": CLIENT_ID}, False),
    ({"client_id": "", "aud": CLIENT_ID}, False),
    ({"client_id": [CLIENT_ID], "aud": CLIENT_ID}, False),
    ({"client_id": {CLIENT_ID: 1}, "aud": CLIENT_ID}, False),
    ({"client_id": CLIENT_ID.upper(), "aud": CLIENT_ID}, False),
    ({"client_id": CLIENT_ID + " "}, False),
    ({"clientId": CLIENT_ID}, False),
    ({"AZP": CLIENT_ID}, False),
    ({"cid": CLIENT_ID}, False),
    ({"aud": "other"}, False),
    ({"aud": ["account", "other"]}, False),
    ({"aud": []}, False),
    ({"aud": None}, False),
    ({"aud": {CLIENT_ID: 1}}, False),
    ({"aud": [[CLIENT_ID]]}, False),
    ({"aud": f"{CLIENT_ID} account"}, False),
    ({"aud": CLIENT_ID + "2"}, False),
    ({}, False),
]


async def test_a_token_of_another_client_is_refused(
    access: OidcAccess, issuer: OidcIssuer, subtests: pytest.Subtests
) -> None:
    for header in [ACCESS, "JWT"]:
        for clients, is_ours in CLIENTS:
            with subtests.test(header=header, clients=clients, is_ours=is_ours):
                kept = {name: value for name, value in issuer.claims().items() if name not in {"azp", "aud", "typ"}}
                claims = {**kept, **clients, **({} if header == ACCESS else {"typ": "Bearer"})}
                assert await is_accepted(access, issuer.signed_as({"typ": header}, claims)) is is_ours
