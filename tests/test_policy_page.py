"""docs/policy.md is what the policy table says."""

from policy_page import PAGE, RENEW, printed


def test_the_page_is_printed_from_the_table() -> None:
    assert PAGE.read_text("utf-8") == printed(), f"docs/policy.md and the policy table differ: {RENEW}"
