"""The facts of a Code, read back from the bytes that Core signed."""

import json

import pytest
from vectors import VECTORS

from soundmark.core.domain.codes.signed_facts import integration_of, read_facts
from soundmark.kit.crypto.canonical import canonicalize

CASES = json.loads((VECTORS / "xr-code-v1.json").read_text(encoding="ascii"))["cases"]


@pytest.mark.parametrize(("is_measured", "integration_id"), [(True, None), (False, "int_0123456789abcdefABCDEF")])
def test_a_policy_that_contradicts_itself_names_no_integration(is_measured: bool, integration_id: str | None) -> None:
    """Core signs no such policy, so it must not measure by one either."""
    policy = {"audience_integration_id": integration_id, "audience_measurement": is_measured}
    facts = read_facts(canonicalize({**json.loads(CASES[0]["canonical"]), "policy": policy}))
    assert facts is not None
    with pytest.raises(ValueError, match="contradicts itself"):
        integration_of(facts)
