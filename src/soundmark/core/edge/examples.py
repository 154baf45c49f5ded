"""What the examples of several features have in common: one tenant, its Code, and a key that is public."""

from datetime import UTC, datetime, timedelta
from typing import Final

from soundmark.core.domain.codes.campaign import Campaign
from soundmark.core.domain.codes.code import Code, Facts, sign_code
from soundmark.core.domain.tenancy.api_key import ApiKey
from soundmark.core.domain.tenancy.member import Member
from soundmark.core.domain.tenancy.organization import Organization, Project
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.signing import SigningKey
from soundmark.wire.private.integrations import IntegrationResponse

# The secret half of the example key is public. It signs only examples and test vectors.
EXAMPLE_KEY: Final = SigningKey.from_seed("sig_c2lnbmluZy1rZXktZXhh", bytes(range(32)))
ISSUED_AT: Final = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
LATER: Final = ISSUED_AT + timedelta(hours=2, minutes=30)

ORGANIZATION: Final = Organization("org_b2xkLXJhZGlvLWV4YW1wbA", "Radio Nordlicht", "owner", ISSUED_AT, None, None)
PROJECT: Final = Project("prj_bW9ybmluZy1zaG93LWV4YW", ORGANIZATION.id, "Morning show", ISSUED_AT, None)
MEMBER: Final = Member("6f1c3f0e-5d0b-4c1e-9a57-2f6e0c1d7b42", "ada@example.org", "admin", ISSUED_AT)
CAMPAIGN: Final = Campaign(
    id="cmp_c3VtbWVyLWZlc3RpdmFsLX",
    organization_id=ORGANIZATION.id,
    project_id=PROJECT.id,
    name="Summer festival",
    starts_at=datetime(2027, 6, 21, tzinfo=UTC),
    ends_at=datetime(2027, 9, 23, tzinfo=UTC),
    created_at=ISSUED_AT,
    archived_at=None,
)
API_KEY: Final = ApiKey(
    id="key_cGxheW91dC1zZXJ2ZXItZX",
    organization_id=ORGANIZATION.id,
    project_id=PROJECT.id,
    name="Playout server",
    scopes=["codes:read", "codes:write"],
    created_at=ISSUED_AT,
    expires_at=ISSUED_AT + timedelta(days=90),
    last_used_at=None,
    secret_rotated_at=None,
    revoked_at=None,
)
INTEGRATION: Final = IntegrationResponse(
    id="int_c3R1ZGlvLW1lYXN1cmVtZW",
    organization_id=ORGANIZATION.id,
    project_id=PROJECT.id,
    mode="contract",
    retention_days=90,
    status="active",
    core_key_id=EXAMPLE_KEY.key_id,
    created_at=ISSUED_AT,
    secret_rotated_at=None,
    revoked_at=None,
)
# It verifies under the example key.
CODE: Final[Code] = sign_code(
    Facts(
        organization_id=ORGANIZATION.id,
        project_id=PROJECT.id,
        campaign_id=None,
        issuer="Radio Nordlicht",
        issued_at=ISSUED_AT,
        expires_at=ISSUED_AT + timedelta(days=42),
        intent=canonicalize(
            {
                "type": "link",
                "action": "open",
                "resource": {"url": "https://example.org/tonight", "title": "Tonight's programme"},
            }
        ),
        audience_integration_id=None,
        key_id=EXAMPLE_KEY.key_id,
    ),
    EXAMPLE_KEY,
    xr_id="xr_bm9yZGxpY2h0LWV4YW1wbA",
    broadcast_token="brd_bm9yZGxpY2h0LWV4",  # noqa: S106 - public, like the key
)
