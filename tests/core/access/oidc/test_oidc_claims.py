"""The claims of an access token: the person, the audience, the second factor and the lifetime."""

from typing import Any

import pytest
from support.identity.oidc_access import is_accepted
from support.identity.oidc_issuer import CLIENT_ID, OidcIssuer, make_issuer_key
from support.processes.fake_clock import FakeClock

from soundmark.core.access.oidc import OidcAccess
from soundmark.core.domain.tenancy.scope import User
from soundmark.core.problems import EmailNotVerified


async def test_a_token_names_a_person(access: OidcAccess, issuer: OidcIssuer) -> None:
    user = await access.user_of(issuer.token("alice"))
    assert user == User("alice", "alice@example.org", has_mfa=True, is_platform_admin=False)


@pytest.mark.parametrize("alg", ["RS256", "PS256", "ES256", "EdDSA"])
async def test_every_algorithm_of_the_list_is_accepted(access: OidcAccess, issuer: OidcIssuer, alg: str) -> None:
    issuer.keys = [make_issuer_key("only", alg)]
    assert await is_accepted(access, issuer.token())


async def test_acr_or_amr_shows_a_second_factor(
    access: OidcAccess, issuer: OidcIssuer, subtests: pytest.Subtests
) -> None:
    for changes, has_mfa in [
        ({"acr": "2"}, True),
        ({"acr": "1"}, False),
        ({"acr": 2}, False),
        ({"acr": None}, False),
        ({"acr": ["2"]}, False),
        ({"acr": None, "amr": ["pwd", "otp"]}, True),
        ({"acr": "1", "amr": ["otp"]}, True),
        ({"acr": None, "amr": ["pwd"]}, False),
        ({"acr": None, "amr": "otp"}, False),
        ({"acr": None, "amr": {"otp": 1}}, False),
        ({"acr": "2 "}, False),
        ({"acr": "12"}, False),
        ({"acr": None, "ACR": "2"}, False),
        ({"acr": None, "amr": ["OTP"]}, False),
        ({"acr": None, "amr": ["totp"]}, False),
        ({"acr": None, "amr": [["otp"]]}, False),
    ]:
        with subtests.test(changes=changes, has_mfa=has_mfa):
            assert (await access.user_of(issuer.token(**changes))).has_mfa is has_mfa


async def test_the_platform_is_administered_by_a_role_of_the_realm(
    access: OidcAccess, issuer: OidcIssuer, subtests: pytest.Subtests
) -> None:
    for realm_access, is_admin in [
        ({"roles": ["x", "svc_platform_admin"]}, True),
        ({"roles": ["SVC_PLATFORM_ADMIN"]}, False),
        ({"roles": "svc_platform_admin"}, False),
        ({"roles": {"svc_platform_admin": 1}}, False),
        ({}, False),
        (["svc_platform_admin"], False),
        (None, False),
        ({"roles": [["svc_platform_admin"]]}, False),
        ({"roles": ["svc_platform_admins"]}, False),
        ({"Roles": ["svc_platform_admin"]}, False),
        ('{"roles": ["svc_platform_admin"]}', False),
    ]:
        with subtests.test(realm_access=realm_access, is_admin=is_admin):
            assert (await access.user_of(issuer.token(realm_access=realm_access))).is_platform_admin is is_admin


async def test_the_role_in_another_place_does_not_count(
    access: OidcAccess, issuer: OidcIssuer, subtests: pytest.Subtests
) -> None:
    for claims in [
        {"roles": ["svc_platform_admin"]},
        {"groups": ["svc_platform_admin"]},
        {"scope": "svc_platform_admin"},
        {"realm_access.roles": ["svc_platform_admin"]},
        {"Realm_Access": {"roles": ["svc_platform_admin"]}},
        {"realm-access": {"roles": ["svc_platform_admin"]}},
        {"resource_access": {CLIENT_ID: {"roles": ["svc_platform_admin"]}}},
        {"svc_platform_admin": True},
    ]:
        with subtests.test(claims=claims):
            assert not (await access.user_of(issuer.token(**claims))).is_platform_admin


async def test_an_unverified_address_is_reported(
    access: OidcAccess, issuer: OidcIssuer, subtests: pytest.Subtests
) -> None:
    for changes in [
        {"email_verified": False},
        {"email_verified": None},
        {"email_verified": "true"},
        {"email_verified": 1},
        {"email": None},
        {"email": ""},
        {"email": ["a@example.org"]},
        {"email": "a@example.org\n"},
        {"email": "a" * 250 + "@b.de"},
        {"email_verified": [True]},
        {"email_verified": None, "emailVerified": True},
        {"email": None, "preferred_username": "alice@example.org"},
    ]:
        with subtests.test(changes=changes), pytest.raises(EmailNotVerified):
            await access.user_of(issuer.token(**changes))


async def test_a_bad_token_is_refused_before_an_unverified_address(access: OidcAccess, issuer: OidcIssuer) -> None:
    assert not await is_accepted(access, issuer.token(email_verified=False, azp="other"))


async def test_a_token_of_another_issuer_or_without_a_subject_or_expiry_is_refused(
    access: OidcAccess, issuer: OidcIssuer, subtests: pytest.Subtests
) -> None:
    for changes in [
        {"iss": None},
        {"iss": "https://other.example"},
        {"iss": ["https://other.example"]},
        {"sub": None},
        {"sub": ""},
        {"sub": "s" * 256},
        {"sub": 7},
        {"sub": "a\0b"},
        {"exp": None},
        {"exp": True},
        {"exp": "99999999999"},
        {"exp": [99999999999]},
        {"exp": 0},
        {"exp": 1e300, "nbf": 1e299},
        {"nbf": "0"},
        {"nbf": True},
        {"nbf": [0]},
        {"iat": "0"},
        {"iat": False},
        {"iss": "", "azp": CLIENT_ID},
        {"sub": "a\x7fb"},
    ]:
        with subtests.test(changes=changes):
            assert not await is_accepted(access, issuer.token(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"iat": None},
        {"sub": "s" * 255},
        {"sub": "ä"},
        {"exp": 1e10},
        {"nonce": "n"},
    ],
    ids=str,
)
async def test_optional_claims_may_be_missing(access: OidcAccess, issuer: OidcIssuer, changes: dict[str, Any]) -> None:
    assert await is_accepted(access, issuer.token(**changes))


async def test_a_null_claim_is_not_a_missing_one(access: OidcAccess, issuer: OidcIssuer) -> None:
    """The client is in `aud`, but the token has an `azp` that is not the client."""
    for name in ("azp", "typ", "exp", "nbf", "iat"):
        assert not await is_accepted(access, issuer.signed({**issuer.claims(aud=CLIENT_ID), name: None}))


@pytest.mark.parametrize(
    ("claim", "offset_s", "is_good"),
    [
        ("exp", -59, True),
        ("exp", -60, False),
        ("exp", -61, False),
        ("nbf", 60, True),
        ("nbf", 61, False),
        ("iat", 60, True),
        ("iat", 61, False),
    ],
)
async def test_the_times_allow_a_minute_of_clock_difference(
    access: OidcAccess, issuer: OidcIssuer, clock: FakeClock, claim: str, offset_s: int, is_good: bool
) -> None:
    now = int(clock.freeze().timestamp())
    assert await is_accepted(access, issuer.token(**{claim: now + offset_s})) is is_good


async def test_a_token_ends_while_the_process_runs(access: OidcAccess, issuer: OidcIssuer, clock: FakeClock) -> None:
    token = issuer.token()
    assert await is_accepted(access, token)
    clock.advance(seconds=301 + 60)
    assert not await is_accepted(access, token)
