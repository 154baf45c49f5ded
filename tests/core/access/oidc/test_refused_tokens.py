"""Refused access tokens in the log: the reason, and nothing of the token."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
import structlog
from support.identity.oidc_access import is_accepted
from support.identity.oidc_issuer import IssuerKey, OidcIssuer, make_issuer_key, make_unsigned_token
from support.processes.fake_clock import FakeClock

from soundmark.core.access.oidc import OidcAccess
from soundmark.core.access.refused_tokens import LINES_MAX, WINDOW_S, ClaimFault
from soundmark.core.problems import EmailNotVerified
from soundmark.kit.http.outbound.signed_tokens import TokenFault

REFUSED: dict[str, Callable[[OidcIssuer], str]] = {
    "too_large": lambda issuer: issuer.token(padding="x" * 10 * 1024),
    "malformed": lambda _: "opaque",
    "algorithm": lambda issuer: make_unsigned_token({"alg": "HS256", "kid": "first"}, issuer.claims(), b"x"),
    "unknown_kid": lambda issuer: issuer.signed(issuer.claims(), kid="unknown"),
    "bad_signature": lambda issuer: issuer.token(by=make_issuer_key("first", number=1)),
    "another_issuer": lambda issuer: issuer.token(iss="https://other.example"),
    "another_client": lambda issuer: issuer.token(azp="other"),
    "no_valid_times": lambda issuer: issuer.token(exp=None),
    "not_yet_valid": lambda issuer: issuer.token(nbf=9e9, exp=9e9 + 1),
    "expired": lambda issuer: issuer.token(exp=1),
    "not_an_access_token": lambda issuer: issuer.token(typ="ID"),
    "no_subject": lambda issuer: issuer.token(sub=None),
}


async def refuse(access: OidcAccess, token: str) -> dict[str, object]:
    """Return the one line that the log has about a refused token."""
    with structlog.testing.capture_logs() as events:
        assert not await is_accepted(access, token)
    [event] = [event for event in events if event["event"] != "issuer_keys_changed"]
    return event


@pytest.mark.parametrize("reason", REFUSED)
async def test_a_refused_token_is_one_line_with_the_reason_and_nothing_else(
    access: OidcAccess, issuer: OidcIssuer, reason: str
) -> None:
    event = await refuse(access, REFUSED[reason](issuer))
    assert event == {"event": "access_token_refused", "log_level": "warning", "reason": reason}


@pytest.mark.parametrize("header", [{"kid": None}, {"kid": 7}, {"crit": ["exp"], "exp": 1}], ids=str)
async def test_a_header_that_breaks_the_rules_is_malformed(
    access: OidcAccess, issuer: OidcIssuer, header: dict[str, object]
) -> None:
    assert (await refuse(access, issuer.signed_as(header, issuer.claims())))["reason"] == "malformed"


async def test_a_key_of_another_algorithm_is_not_an_unknown_one(access: OidcAccess, issuer: OidcIssuer) -> None:
    token = issuer.token(by=IssuerKey("first", "PS256", issuer.keys[0].private))
    assert (await refuse(access, token))["reason"] == "algorithm"


async def test_a_token_without_a_kid_is_told_from_one_with_an_unknown_kid(
    access: OidcAccess, issuer: OidcIssuer
) -> None:
    issuer.keys.append(make_issuer_key("second", number=1))
    assert (await refuse(access, issuer.signed(issuer.claims(), kid=None)))["reason"] == "no_kid"


async def test_an_unverified_address_is_a_line_too(access: OidcAccess, issuer: OidcIssuer) -> None:
    with structlog.testing.capture_logs() as events, pytest.raises(EmailNotVerified):
        await access.user_of(issuer.token("alice", email_verified=False))
    assert [event.get("reason") for event in events] == [None, "email_not_verified"], "after `issuer_keys_changed`"
    assert "alice" not in repr(events)


async def test_an_accepted_token_is_no_line(access: OidcAccess, issuer: OidcIssuer) -> None:
    assert await is_accepted(access, issuer.token())
    with structlog.testing.capture_logs() as events:
        assert await is_accepted(access, issuer.token())
    assert events == []


async def test_a_flood_neither_fills_the_log_nor_hides_other_reasons(
    access: OidcAccess, issuer: OidcIssuer, clock: FakeClock
) -> None:
    with structlog.testing.capture_logs() as events:
        for _ in range(LINES_MAX + 5):
            assert not await is_accepted(access, "opaque")
    assert [event["reason"] for event in events] == ["malformed"] * LINES_MAX
    assert (await refuse(access, issuer.token(azp="other")))["reason"] == "another_client"

    clock.advance(seconds=WINDOW_S)
    assert (await refuse(access, "opaque"))["left_out"] == 5
    assert "left_out" not in await refuse(access, "opaque")


def test_the_operating_guide_explains_each_reason() -> None:
    guide = (Path(__file__).parents[4] / "docs" / "guides" / "operating.md").read_text("utf-8")
    reasons = (*get_args(TokenFault), *get_args(ClaimFault))
    assert re.findall(r"^\| `([a-z_]+)` \|", guide.partition("`access_token_refused`")[2], re.MULTILINE)[
        : len(reasons)
    ] == list(reasons)
