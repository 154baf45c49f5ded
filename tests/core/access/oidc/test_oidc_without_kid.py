"""Access tokens without a `kid`: the one key of the set that fits the algorithm judges them."""

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.identity.oidc_access import is_accepted
from support.identity.oidc_issuer import OidcIssuer, make_issuer_key

from soundmark.core.access.oidc import OidcAccess
from soundmark.kit.http.outbound.issuer_keys import verification_keys

FIRST = make_issuer_key("first").jwk
SECOND = make_issuer_key("second", number=1).jwk


def without(jwk: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in jwk.items() if name not in names}


# A set of keys, and whether its only key that fits is the one that signed.
SETS: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "one": ([FIRST], True),
    "one without a kid": ([without(FIRST, "kid")], True),
    "one without an algorithm": ([without(FIRST, "alg")], True),
    "another of another type": ([make_issuer_key("other", "ES256").jwk, FIRST], True),
    "another of another algorithm": ([{**SECOND, "alg": "PS256"}, FIRST], True),
    "another for encryption": ([{**SECOND, "use": "enc"}, FIRST], True),
    "two": ([SECOND, FIRST], False),
    "two, one without a kid": ([without(SECOND, "kid"), FIRST], False),
    "two, one without an algorithm": ([without(SECOND, "alg"), FIRST], False),
    "the same twice": ([FIRST, FIRST], False),
    "the wrong one": ([SECOND], False),
    "none for the algorithm": ([make_issuer_key("other", "ES256").jwk], False),
}


@pytest.mark.parametrize("name", SETS)
async def test_a_token_without_a_kid_is_judged_by_the_only_key_that_fits(
    access: OidcAccess, issuer: OidcIssuer, name: str
) -> None:
    keys, is_good = SETS[name]
    issuer.jwks = {"keys": keys}
    assert await is_accepted(access, issuer.signed(issuer.claims(), kid=None)) is is_good


async def test_a_token_without_a_kid_causes_no_search_for_keys(access: OidcAccess, issuer: OidcIssuer) -> None:
    issuer.keys.append(make_issuer_key("second", number=1))
    for _ in range(3):
        assert not await is_accepted(access, issuer.signed(issuer.claims(), kid=None))
    assert issuer.readings_count == 1
    async with issuer.down():
        assert not await is_accepted(access, issuer.signed(issuer.claims(), kid=None)), "the set is known, so no 503"


@functools.cache
def _key(alg: str, number: int) -> dict[str, Any]:
    return make_issuer_key("x", alg, number).jwk


MEMBERS = st.builds(
    lambda jwk, kid, alg, use: {**without(jwk, "kid", "alg"), **kid, **alg, "use": use},
    st.sampled_from([_key("RS256", 0), _key("RS256", 1), _key("ES256", 0)]),
    st.sampled_from([{}, {"kid": "a"}, {"kid": "b"}, {"kid": ""}, {"kid": None}]),
    st.sampled_from([{}, {"alg": "RS256"}, {"alg": "PS256"}, {"alg": "ES256"}, {"alg": "HS256"}]),
    st.sampled_from(["sig", "enc"]),
)


@given(st.lists(MEMBERS, max_size=4))
def test_keys_are_found_by_kid_as_if_there_were_no_others_and_without_one_only_alone(
    members: list[dict[str, Any]],
) -> None:
    """What a `kid` finds does not depend on members without one, so nothing else is accepted on their account."""
    found = verification_keys({"keys": members})
    named = verification_keys({"keys": [member for member in members if isinstance(member.get("kid"), str)]})
    assert {entry for entry in found if entry[0] is not None} == {entry for entry in named if entry[0] is not None}
    for algorithm in ("RS256", "PS256", "ES256", "EdDSA", "HS256"):
        fitting = [
            member for member in members if any(alg == algorithm for _, alg in verification_keys({"keys": [member]}))
        ]
        assert ((None, algorithm) in found) is (len(fitting) == 1)
