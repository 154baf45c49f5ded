"""docs/policy.md matches the policy table."""

from policy_page import PAGE, RENEW, printed


def test_the_page_matches_the_table() -> None:
    assert PAGE.read_text("utf-8") == printed(), f"docs/policy.md and the policy table differ: {RENEW}"
