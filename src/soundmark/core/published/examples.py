"""Genuine examples: made by the code that makes the real responses, under a key that is public."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from soundmark.core.domain.audience.integration import IntegrationSecret
from soundmark.core.domain.billing.catalog import AccountingCustomer
from soundmark.core.domain.codes.campaign import Campaign, StopResult, Summary
from soundmark.core.domain.codes.code import Code, Facts, ListedCode, sign_code
from soundmark.core.domain.codes.quota import Quota
from soundmark.core.domain.codes.signed_facts import read_facts
from soundmark.core.domain.platform.settings import EffectiveSetting, SecretStatus
from soundmark.core.domain.tenancy.api_key import ApiKey
from soundmark.core.domain.tenancy.audit import AuditEntry
from soundmark.core.domain.tenancy.audit_chain import Verification
from soundmark.core.domain.tenancy.closure import Blocker, Closure, ClosurePreview
from soundmark.core.domain.tenancy.invitation import Invitation
from soundmark.core.domain.tenancy.member import Member
from soundmark.core.domain.tenancy.organization import Organization, Project
from soundmark.core.domain.tenancy.scope import ServerKey
from soundmark.core.features.audience.integrations.wire import (
    IntegrationPage,
    core_key_view,
    retention_view,
    with_secret_view,
)
from soundmark.core.features.billing.webhooks.wire import WebhookAnswer
from soundmark.core.features.codes.campaigns.wire import CampaignPage, stopped_view
from soundmark.core.features.codes.campaigns.wire import summary_view as campaign_summary_view
from soundmark.core.features.codes.codes.wire import CodePage, RevokedCodes
from soundmark.core.features.codes.issuance.wire import IssuedCodes, Verdict
from soundmark.core.features.codes.resolution.wire import KeyHistory, KeySet, verification_key
from soundmark.core.features.codes.usage.service import ModeMeasurement, Usage
from soundmark.core.features.codes.usage.wire import usage_view
from soundmark.core.features.platform.settings.wire import setting_view, settings_view
from soundmark.core.features.tenancy.api_keys.wire import ApiKeyPage, api_key_with_secret
from soundmark.core.features.tenancy.audit_log.wire import AuditEntryPage, entry_view, verification_view
from soundmark.core.features.tenancy.caller.wire import caller_view
from soundmark.core.features.tenancy.closure.certificate import write_certificate
from soundmark.core.features.tenancy.closure.wire import organization_preflight, project_preflight
from soundmark.core.features.tenancy.exports.subject import organization_subject, project_subject
from soundmark.core.features.tenancy.invitations.service import NewInvitation, NewMembership
from soundmark.core.features.tenancy.invitations.wire import InvitationPage, created_view, invitation_view, joined_view
from soundmark.core.features.tenancy.members.wire import MemberPage
from soundmark.core.features.tenancy.organizations.wire import OrganizationPage
from soundmark.core.features.tenancy.projects.wire import ProjectPage
from soundmark.core.features.webhooks.delivery.wire import WebhookTestView
from soundmark.core.hot.envelope import EnvelopeSigner, answer_body
from soundmark.core.live.platform_settings import PlatformOverview
from soundmark.core.problems import DeletionOperationsPending, QuotaExceeded
from soundmark.core.published.example_archives import example_archive
from soundmark.core.published.example_catalog import example_catalog
from soundmark.core.published.example_checkouts import example_checkouts
from soundmark.core.published.example_release import example_release
from soundmark.core.published.example_reports import example_legacy_report, example_report
from soundmark.core.published.example_subscriptions import example_subscriptions
from soundmark.core.published.example_tickets import example_tickets
from soundmark.core.published.example_webhooks import example_webhooks
from soundmark.core.store.tenancy.deletions import TenantCounts
from soundmark.core.views.accounting_customers import accounting_customer_view
from soundmark.core.views.campaigns import campaign_view
from soundmark.core.views.codes import detail_view, issued_view, summary_view
from soundmark.core.views.integrations import archived_integration, integration_view
from soundmark.core.views.signing_keys import historic_key
from soundmark.core.views.tenancy import api_key_view, archived_api_key, member_view, organization_view, project_view
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.crypto.signing import SigningKey
from soundmark.settings.registry import CONFIGURATION, CREDENTIALS, PlatformFallbacks
from soundmark.wire.audience_event import EventAnswer
from soundmark.wire.deletion_certificate import DeletionCertificate
from soundmark.wire.private.integrations import CoreKeyResponse, IntegrationResponse, RetentionResponse

# The secret half of the example key is public. It signs only examples and test vectors.
EXAMPLE_KEY: Final = SigningKey.from_seed("sig_c2lnbmluZy1rZXktZXhh", bytes(range(32)))
ISSUED_AT: Final = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
_LATER: Final = ISSUED_AT + timedelta(hours=2, minutes=30)
_MIDNIGHT: Final = datetime(2026, 11, 18, tzinfo=UTC)

_ORGANIZATION: Final = Organization("org_b2xkLXJhZGlvLWV4YW1wbA", "Radio Nordlicht", "owner", ISSUED_AT, None)
_PROJECT: Final = Project("prj_bW9ybmluZy1zaG93LWV4YW", _ORGANIZATION.id, "Morning show", ISSUED_AT, None)

_MAIL_HOST: Final = EffectiveSetting("mail.example.org", "database", ISSUED_AT)
_MEMBER: Final = Member("6f1c3f0e-5d0b-4c1e-9a57-2f6e0c1d7b42", "ada@example.org", "admin", ISSUED_AT)
_CAMPAIGN: Final = Campaign(
    id="cmp_c3VtbWVyLWZlc3RpdmFsLX",
    organization_id=_ORGANIZATION.id,
    project_id=_PROJECT.id,
    name="Summer festival",
    starts_at=datetime(2027, 6, 21, tzinfo=UTC),
    ends_at=datetime(2027, 9, 23, tzinfo=UTC),
    created_at=ISSUED_AT,
    archived_at=None,
)
_SUMMARY: Final = Summary(
    campaign=_CAMPAIGN,
    issued_count=100,
    active_count=60,
    expired_count=37,
    revoked_count=3,
    audience_enabled_count=0,
    first_issued_at=datetime(2027, 6, 21, 8, 0, tzinfo=UTC),
    last_issued_at=datetime(2027, 8, 1, 17, 30, tzinfo=UTC),
)
_STOPPED_AT: Final = datetime(2027, 8, 1, 18, 0, tzinfo=UTC)
_API_KEY: Final = ApiKey(
    id="key_cGxheW91dC1zZXJ2ZXItZX",
    organization_id=_ORGANIZATION.id,
    project_id=_PROJECT.id,
    name="Playout server",
    scopes=["codes:read", "codes:write"],
    created_at=ISSUED_AT,
    expires_at=ISSUED_AT + timedelta(days=90),
    last_used_at=None,
    secret_rotated_at=None,
    revoked_at=None,
)
_CLOSURE: Final = Closure(
    organization_id=_ORGANIZATION.id,
    project_id=_PROJECT.id,
    certificate_id="dct_dGhhdC13YXMtaXQtZXhhbX",
    operation_id="aud_cHJvamVjdC1nb2VzLWV4YW",
    phase="deleting",
    requested_at=ISSUED_AT,
    deleted_codes=1200,
    deleted_audit_entries=0,
    purged_integrations=1,
    purged_events=48210,
    purged_integrity_days=14,
    purged_legacy_days=0,
    purged_spent_proofs=48210,
)
_PROJECT_PREVIEW: Final = ClosurePreview(
    blockers=(Blocker(DeletionOperationsPending.code, ("aud_cmV0ZW50aW9uLWN1dC1leG",)),),
    counts={"campaigns": 1, "codes": 1200, "active_codes": 1100, "api_keys": 2, "audience_integrations": 1},
    certificate_id=_CLOSURE.certificate_id,
    deletion_requested_at=None,
)
_ORGANIZATION_PREVIEW: Final = ClosurePreview(
    blockers=(),
    counts={**_PROJECT_PREVIEW.counts, "projects": 1, "members": 3},
    certificate_id="dct_b3JnYW5pemF0aW9uLWV4YW",
    deletion_requested_at=None,
)
_CALLER: Final = ServerKey(_API_KEY.id, _ORGANIZATION.id, _PROJECT.id, frozenset(_API_KEY.scopes), digest=b"")
_API_KEY_SECRET: Final = Secret("xak_" + "ZXhhbXBsZS1vZi1hLXNlY3JldC10aGF0LW9wZW5zLW4")
_INTEGRATION_NAME: Final = "Studio measurement"
_INTEGRATION: Final = IntegrationResponse(
    id="int_c3R1ZGlvLW1lYXN1cmVtZW",
    organization_id=_ORGANIZATION.id,
    project_id=_PROJECT.id,
    mode="contract",
    retention_days=90,
    status="active",
    core_key_id=EXAMPLE_KEY.key_id,
    created_at=ISSUED_AT,
    secret_rotated_at=None,
    revoked_at=None,
)
_RETENTION: Final = RetentionResponse(
    integration_id=_INTEGRATION.id,
    previous_retention_days=90,
    retention_days=30,
    deleted_events=41_203,
    deleted_integrity_days=60,
)
_HMAC_SECRET: Final = Secret("xhm_" + "ZXhhbXBsZS1vZi1hLXNlY3JldC10aGF0LXNpZ25zLWV")
_WEBHOOKS: Final = (
    *("receive_card_event", "receive_checkout_notification", "receive_checkout_query"),
    *("receive_local_notification", "receive_local_query"),
)
_EVENT_ID: Final = "evt_b25lLXNvdW5kLWhlYXJkLW"
_INVITATION: Final = Invitation(
    id="inv_YWRhLWlzLWludml0ZWQtZX",
    organization_id=_ORGANIZATION.id,
    email="ada@example.org",
    role="member",
    created_at=ISSUED_AT,
    expires_at=ISSUED_AT + timedelta(days=7),
    accepted_at=None,
    revoked_at=None,
    delivery_status="pending",
)
_INVITATION_SECRET: Final = Secret("xin_" + "ZXhhbXBsZS1vZi1hLXNlY3JldC10aGF0LWludml0ZXM")
_AUDIT_ENTRY: Final = AuditEntry(
    id="aud_cmVuYW1lZC1hLXByb2plY3",
    organization_id=_ORGANIZATION.id,
    project_id=_PROJECT.id,
    action="project.updated",
    actor_type="user",
    actor_id="6f1c3f0e-5d0b-4c1e-9a57-2f6e0c1d7b42",
    outcome="completed",
    metadata='{"name":"Morning show"}',
    created_at=ISSUED_AT,
    finalised_at=ISSUED_AT,
)


def example_code() -> Code:
    """Return a Code that verifies under the example key."""
    xr_id, token = "xr_bm9yZGxpY2h0LWV4YW1wbA", "brd_bm9yZGxpY2h0LWV4"
    facts = Facts(
        organization_id=_ORGANIZATION.id,
        project_id=_PROJECT.id,
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
    )
    return sign_code(facts, EXAMPLE_KEY, xr_id=xr_id, broadcast_token=token)


def example_resolution() -> dict[str, Any]:
    """Return the response to a receiver of the example Code."""
    facts = read_facts(example_code().payload)
    assert facts is not None, "the example is a signed Code"
    now = ISSUED_AT + timedelta(hours=1)
    resolution: dict[str, Any] = json.loads(answer_body(facts, EnvelopeSigner(EXAMPLE_KEY, now).envelope(facts)))
    return resolution


def example_keys() -> KeySet:
    """Return the key set that verifies the examples."""
    return KeySet(keys=[verification_key(EXAMPLE_KEY.key_id, EXAMPLE_KEY.public_key, "active")])


def _key_history() -> KeyHistory:
    """Return the example key and the one that it replaced."""
    retired = SigningKey.from_seed("sig_cmV0aXJlZC1rZXktZXhhbX", bytes(range(64, 96)))
    activated_at = ISSUED_AT - timedelta(days=30)
    return KeyHistory(
        keys=[
            historic_key(
                retired.key_id,
                retired.public_key,
                "retired",
                activated_at=activated_at - timedelta(days=365),
                superseded_at=activated_at,
            ),
            historic_key(
                EXAMPLE_KEY.key_id, EXAMPLE_KEY.public_key, "active", activated_at=activated_at, superseded_at=None
            ),
        ]
    )


def _certificate() -> bytes:
    none = TenantCounts(**dict.fromkeys(TenantCounts.__dataclass_fields__, 0))
    deleted = replace(none, projects=1, campaigns=1, codes=1200, api_keys=2)
    return write_certificate(EXAMPLE_KEY, _CLOSURE, deleted, none, completed_at=_LATER)


def _platform() -> PlatformOverview:
    """Return the settings of a platform with a mail server and defaults for everything else."""
    unset = SecretStatus(is_configured=False, updated_at=None)
    login = dict.fromkeys(("smtp_username", "smtp_password"), SecretStatus(is_configured=True, updated_at=ISSUED_AT))
    defaults = PlatformFallbacks()
    values = {name: EffectiveSetting(getattr(defaults, name), "default", None) for name in CONFIGURATION}
    sender = EffectiveSetting("codes@example.org", "environment", None)
    return PlatformOverview(
        secrets={**dict.fromkeys(CREDENTIALS, unset), **login},
        configuration={**values, "smtp_host": _MAIL_HOST, "smtp_from_email": sender},
    )


def _archives(code: Code) -> dict[str, Any]:
    organization, project = organization_view(_ORGANIZATION), project_view(_PROJECT)
    records = {
        "campaigns": campaign_view(_CAMPAIGN),
        "codes": detail_view(code, ISSUED_AT),
        "api_keys": archived_api_key(_API_KEY, ISSUED_AT),
        "audience_integrations": archived_integration(_INTEGRATION),
    }
    people = {"members": member_view(_MEMBER), "projects": project}
    return {
        "export_organization": example_archive(
            organization_subject(organization.id),
            {"organization": organization},
            people | records,
            key=EXAMPLE_KEY,
            now=ISSUED_AT,
        ),
        "export_project": example_archive(
            project_subject(project.id),
            {"organization_id": organization.id, "project": project},
            records,
            key=EXAMPLE_KEY,
            now=ISSUED_AT,
        ),
    }


def examples() -> dict[str, Any]:
    """Return the successful response of each operation, by operation id, with the status if there are several."""
    code = example_code()
    listed = ListedCode(**{name: getattr(code, name) for name in ListedCode.__dataclass_fields__})
    organization, project = organization_view(_ORGANIZATION), project_view(_PROJECT)
    answers = {
        "get_caller": caller_view(_CALLER),
        "create_organization": organization,
        "rename_organization": organization,
        "list_organizations": OrganizationPage(data=[organization], next_cursor=None),
        "create_project": project,
        "rename_project": project,
        "preview_organization_deletion": organization_preflight(_ORGANIZATION_PREVIEW),
        "preview_project_deletion": project_preflight(_PROJECT_PREVIEW),
        "get_deletion_certificate": DeletionCertificate.model_validate_json(_certificate()),
        "list_projects": ProjectPage(data=[project], next_cursor=None),
        "list_members": MemberPage(data=[member_view(_MEMBER)], next_cursor=None),
        "change_member": member_view(_MEMBER),
        "create_invitation": created_view(NewInvitation(_INVITATION, _INVITATION_SECRET)),
        "list_invitations": InvitationPage(data=[invitation_view(_INVITATION, ISSUED_AT)], next_cursor=None),
        "revoke_invitation": invitation_view(
            replace(_INVITATION, revoked_at=_LATER, delivery_status="cancelled"), _LATER
        ),
        "accept_invitation": joined_view(NewMembership(_INVITATION.organization_id, _INVITATION.role)),
        "create_api_key": api_key_with_secret(_API_KEY, _API_KEY_SECRET, ISSUED_AT),
        "list_api_keys": ApiKeyPage(data=[api_key_view(_API_KEY, ISSUED_AT)], next_cursor=None),
        "rename_api_key": api_key_view(_API_KEY, ISSUED_AT),
        "revoke_api_key": api_key_view(replace(_API_KEY, revoked_at=_LATER), _LATER),
        "rotate_api_key_secret": api_key_with_secret(
            replace(_API_KEY, secret_rotated_at=_LATER), _API_KEY_SECRET, _LATER
        ),
        "list_audit_entries": AuditEntryPage(data=[entry_view(_AUDIT_ENTRY)], next_cursor=None),
        "verify_audit_log": verification_view(Verification(True, entries=41, unsealed=1, first_broken=None)),
        "create_campaign": campaign_view(_CAMPAIGN),
        "list_campaigns": CampaignPage(data=[campaign_view(_CAMPAIGN)], next_cursor=None),
        "update_campaign": campaign_view(_CAMPAIGN),
        "archive_campaign": campaign_view(replace(_CAMPAIGN, archived_at=_STOPPED_AT)),
        "stop_campaign": stopped_view(StopResult(replace(_CAMPAIGN, archived_at=_STOPPED_AT), revoked_count=60)),
        "summarise_campaign": campaign_summary_view(_SUMMARY),
        "create_integration": with_secret_view(IntegrationSecret(_INTEGRATION, _HMAC_SECRET), _INTEGRATION_NAME),
        "list_integrations": IntegrationPage(
            data=[integration_view(_INTEGRATION, _INTEGRATION_NAME)], next_cursor=None
        ),
        "rename_integration": integration_view(_INTEGRATION, _INTEGRATION_NAME),
        "revoke_integration": integration_view(
            _INTEGRATION.model_copy(update={"status": "revoked", "revoked_at": _LATER}), _INTEGRATION_NAME
        ),
        "rotate_integration_secret": with_secret_view(
            IntegrationSecret(_INTEGRATION.model_copy(update={"secret_rotated_at": _LATER}), _HMAC_SECRET),
            _INTEGRATION_NAME,
        ),
        "change_integration_retention": retention_view(_RETENTION),
        "replace_integration_core_key": core_key_view(
            CoreKeyResponse(integration_id=_INTEGRATION.id, core_key_id=EXAMPLE_KEY.key_id)
        ),
        "read_audience_report": example_report(_INTEGRATION.id, _CAMPAIGN.id, code.xr_id, _MIDNIGHT),
        "read_legacy_report": example_legacy_report(_ORGANIZATION.id, _PROJECT.id, _MIDNIGHT),
        "deliver_event": EventAnswer(event_id=_EVENT_ID, status="recorded"),
        "deliver_event 200": EventAnswer(event_id=_EVENT_ID, status="duplicate"),
        **dict.fromkeys(_WEBHOOKS, WebhookAnswer(status="processed")),
        "get_usage": usage_view(
            _ORGANIZATION.id, Usage(Quota(100, 12, ISSUED_AT), [ModeMeasurement("contract", 41_203, 1, 50_000)])
        ),
        "test_webhook_endpoint": WebhookTestView(status_code=204, duration_ms=87, error=None),
        "issue_code": issued_view(code),
        "issue_code 200": Verdict(would_issue=True, code=None, quota_remaining=88),
        "issue_codes": IssuedCodes(data=[issued_view(code)]),
        "issue_codes 200": Verdict(would_issue=False, code=QuotaExceeded.code, quota_remaining=7),
        "recover_code": issued_view(code),
        "recover_codes": IssuedCodes(data=[issued_view(code)]),
        "list_codes": CodePage(data=[summary_view(listed, ISSUED_AT)], next_cursor=None),
        "get_code": detail_view(code, ISSUED_AT),
        "revoke_code": detail_view(code, ISSUED_AT),
        "revoke_codes": RevokedCodes(requested_count=100, revoked_count=98, unchanged_count=2),
        "get_platform_settings": settings_view(_platform()),
        "put_platform_configuration": setting_view(_MAIL_HOST),
        **example_subscriptions(_ORGANIZATION.id),
        "put_accounting_customer": accounting_customer_view(
            AccountingCustomer(
                _ORGANIZATION.id, _ORGANIZATION.name, thirdparty_id=17, updated_at=_ORGANIZATION.created_at
            )
        ),
        "list_keys": example_keys(),
        "list_key_history": _key_history(),
        **example_catalog(_ORGANIZATION.id, _ORGANIZATION.name),
        **example_checkouts(_ORGANIZATION.id),
        **example_webhooks(_ORGANIZATION.id, _PROJECT.id, _MEMBER.subject_id, code.xr_id),
        **example_release(_LATER),
        **example_tickets(_ORGANIZATION.id),
    }
    shown = {name: answer.model_dump(mode="json") for name, answer in answers.items()}
    shown |= _archives(code)
    shown["revoke_code"] |= {"status": "revoked", "revoked_at": "2026-11-20T12:30:00.000Z"}
    return shown | {"resolve": example_resolution()}
