"""The facts of a signed Code, read back from the signed bytes."""

from datetime import datetime
from typing import Final, Literal

import msgspec

from soundmark.core.domain.codes.code import Code, digest_of
from soundmark.kit.text.timestamps import format_timestamp


class SignedFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The members of `xr-code-v1` without `signature`. `intent` and `policy` stay canonical bytes."""

    campaign_id: str | None
    expires_at: str
    intent: msgspec.Raw
    issued_at: str
    issuer: str
    key_id: str
    organization_id: str
    policy: msgspec.Raw
    project_id: str
    token_digest: str
    version: Literal[1]
    xr_id: str


class _Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    audience_integration_id: str | None
    audience_measurement: bool


_DECODER: Final = msgspec.json.Decoder(SignedFacts)
_POLICY_DECODER: Final = msgspec.json.Decoder(_Policy)
_NOT_MEASURED: Final = b'{"audience_integration_id":null,"audience_measurement":false}'


def read_facts(payload: bytes) -> SignedFacts | None:
    """Return the facts in a stored payload; None if it does not have the shape that Core signs."""
    try:
        return _DECODER.decode(payload)
    except msgspec.MsgspecError:
        return None


def integration_of(facts: SignedFacts) -> str | None:
    """Return the integration that measures the Code; None if it is not measured.

    Raises: ValueError for a policy that Core would not have signed.
    """
    if bytes(facts.policy) == _NOT_MEASURED:
        return None
    policy = _POLICY_DECODER.decode(facts.policy)
    if policy.audience_measurement != (policy.audience_integration_id is not None):
        raise ValueError("the policy contradicts itself")
    return policy.audience_integration_id


def agree(facts: SignedFacts, code: Code) -> bool:
    """Return whether every column of a Code matches what was signed."""
    return (
        facts.xr_id == code.xr_id
        and facts.organization_id == code.organization_id
        and facts.project_id == code.project_id
        and facts.campaign_id == code.campaign_id
        and facts.issuer == code.issuer
        and _names(facts.issued_at, code.issued_at)
        and _names(facts.expires_at, code.expires_at)
        and facts.key_id == code.key_id
        and code.broadcast_token.isascii()
        and facts.token_digest == digest_of(code.broadcast_token)
        and msgspec.json.decode(facts.policy)
        == {
            "audience_measurement": code.audience_integration_id is not None,
            "audience_integration_id": code.audience_integration_id,
        }
    )


def _names(text: str, moment: datetime) -> bool:
    """Return whether `text` is exactly this time. A signed timestamp has a resolution of one millisecond."""
    return text == format_timestamp(moment) and moment.microsecond % 1000 == 0
