"""One row per operation: a valid call of it, and what the tests of shared rules expect of it."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from soundmark.core.domain.tenancy.audit import AuditAction
from support.api.prepared_calls import (
    change_campaign,
    change_member,
    change_retention,
    change_webhook_endpoint,
    confirm_organization,
    export_organization,
    export_project,
    fill_allowed_hosts,
    fill_campaign,
    fill_code,
    fill_codes,
    fill_integration,
    fill_invitation,
    fill_key,
    fill_pack,
    fill_project,
    fill_suspension,
    fill_ticket,
    fill_webhook_endpoint,
    invite_caller,
    issue_certificate,
    issue_one_before,
    issue_two_before,
    make_abuse_report,
    make_campaign,
    make_certificate,
    make_code,
    make_failed_job,
    make_integration,
    make_invitation,
    make_key,
    make_project,
    make_reply,
    make_ticket,
    make_token,
    make_unreachable_endpoint,
    make_webhook_deliveries,
    make_webhook_endpoint,
    make_webhook_event,
    measure_code,
    name_organization,
    name_own_project,
    name_project,
    name_suspended_organization,
    name_untested_system,
    preview_organization,
    preview_project,
    prove_key,
    remove_member,
    rename_integration,
    rename_key,
    rename_organization,
    rename_project,
    replay_webhooks,
    select_code,
    select_code_of_project,
    sign_desk_delivery,
    sign_event,
    store_evidence,
)
from support.api.prepared_payments import (
    begin_checkout,
    buy_offer,
    fill_accounting_customer,
    fill_contract,
    fill_offer,
    fill_plan,
    find_portal,
    make_checkout,
    notify_of_checkout,
    notify_of_payment,
    sign_card_event,
)
from support.api.world import Prepare, plain

OWNERS: Final = frozenset({"owner"})


ADMINS: Final = frozenset({"owner", "admin"})


BUYERS: Final = ADMINS | {"billing"}


READERS: Final = ADMINS | {"member"}


EVERYBODY: Final = READERS | {"billing"}


class Row(NamedTuple):
    """What every test of a shared rule needs to know about one operation.

    `roles` are those of the contract's role table (section 2), written down a second time on purpose; None for an
    operation in no organisation. `foreign` is the problem code if what the call names belongs to another organisation
    of the same owner, None if it names nothing but an organisation. `audited` is the action of the one audit entry
    that the operation writes.
    """

    prepare: Prepare
    roles: frozenset[str] | None = None
    foreign: str | None = None
    audited: AuditAction | None = None


ROWS: Final[Mapping[str, Row]] = {
    "accept_invitation": Row(invite_caller, audited="invitation.accepted"),
    "archive_campaign": Row(make_campaign, roles=ADMINS, foreign="campaign_not_found", audited="campaign.archived"),
    "bundle_codes": Row(select_code_of_project, roles=READERS, foreign="code_not_found"),
    "cancel_checkout": Row(
        begin_checkout,
        roles=BUYERS,
        foreign="checkout_not_found",
        audited="billing.checkout_cancelled",
    ),
    "change_integration_retention": Row(
        change_retention, roles=ADMINS, foreign="integration_not_found", audited="audience.integration_retention_update"
    ),
    "change_member": Row(change_member, roles=ADMINS, foreign="member_not_found", audited="member.role_changed"),
    "create_api_key": Row(fill_key, roles=ADMINS, foreign="project_not_found", audited="api_key.created"),
    "create_campaign": Row(fill_campaign, roles=ADMINS, foreign="project_not_found", audited="campaign.created"),
    "create_checkout": Row(buy_offer, roles=BUYERS, audited="billing.checkout_created"),
    "create_integration": Row(
        fill_integration, roles=ADMINS, foreign="project_not_found", audited="audience.integration_provisioning"
    ),
    "create_invitation": Row(fill_invitation, roles=ADMINS, audited="invitation.created"),
    "create_webhook_endpoint": Row(
        fill_webhook_endpoint, roles=ADMINS, foreign="project_not_found", audited="webhook_endpoint.created"
    ),
    "create_organization": Row(plain(json={"name": "Radio Westwind"}), audited="organization.created"),
    "create_project": Row(fill_project, roles=ADMINS, audited="project.created"),
    "delete_organization": Row(confirm_organization, roles=OWNERS),
    "delete_project": Row(make_project, roles=ADMINS, foreign="project_not_found"),
    "delete_webhook_endpoint": Row(
        make_webhook_endpoint,
        roles=ADMINS,
        foreign="webhook_endpoint_not_found",
        audited="webhook_endpoint.deleted",
    ),
    "create_ticket": Row(fill_ticket, roles=EVERYBODY, audited="support.ticket_created"),
    "deliver_event": Row(sign_event),
    "export_organization": Row(export_organization, roles=OWNERS, audited="organization.exported"),
    "export_project": Row(export_project, roles=ADMINS, foreign="project_not_found", audited="project.exported"),
    "get_allowed_hosts": Row(name_own_project, roles=EVERYBODY, foreign="project_not_found"),
    "get_caller": Row(plain()),
    "get_catalog": Row(plain()),
    "get_checkout": Row(make_checkout, roles=BUYERS, foreign="checkout_not_found"),
    "get_code": Row(make_code, roles=READERS, foreign="code_not_found"),
    "get_deletion_certificate": Row(make_certificate),
    "get_log": Row(plain()),
    "get_log_checkpoint": Row(plain()),
    "get_log_entries": Row(plain(path={"number": "000.p/2"}, headers={"Accept-Encoding": "identity"})),
    "get_log_proof": Row(prove_key),
    "get_log_tile": Row(plain(path={"level": "0", "number": "000.p/2"})),
    "get_decode_certificate": Row(issue_certificate),
    "get_platform_settings": Row(plain()),
    # The Core under test has no worker: test_release_readiness.py lets one read evidence.
    "get_release_readiness": Row(store_evidence),
    "get_ticket": Row(make_ticket, roles=EVERYBODY, foreign="ticket_not_found"),
    "get_usage": Row(name_organization, roles=EVERYBODY),
    "get_webhook_endpoint": Row(make_webhook_endpoint, roles=ADMINS, foreign="webhook_endpoint_not_found"),
    "get_webhook_event": Row(make_webhook_event, roles=ADMINS, foreign="webhook_event_not_found"),
    "issue_code": Row(fill_code, roles=ADMINS, foreign="project_not_found", audited="code.issued"),
    "issue_decode_certificate": Row(
        measure_code, roles=READERS, foreign="code_not_found", audited="decode_certificate.issued"
    ),
    "issue_codes": Row(fill_codes, roles=ADMINS, foreign="project_not_found", audited="code.batch_issued"),
    "list_abuse_reports": Row(plain()),
    "make_offline_pack": Row(fill_pack, roles=ADMINS, foreign="project_not_found", audited="offline_pack.created"),
    "list_api_keys": Row(name_organization, roles=ADMINS),
    "list_audit_entries": Row(name_organization, roles=ADMINS),
    "list_campaigns": Row(name_project, roles=EVERYBODY, foreign="project_not_found"),
    "list_checkouts": Row(name_organization, roles=BUYERS),
    "list_codes": Row(name_organization, roles=READERS),
    "list_integrations": Row(name_project, roles=READERS, foreign="project_not_found"),
    "list_invitations": Row(name_organization, roles=ADMINS),
    "list_key_history": Row(plain()),
    "list_keys": Row(plain()),
    "list_members": Row(name_organization, roles=ADMINS),
    "list_offers": Row(plain()),
    "list_organizations": Row(plain()),
    "list_platform_jobs": Row(plain()),
    "list_platform_organizations": Row(plain()),
    "list_projects": Row(name_organization, roles=EVERYBODY),
    "list_subscriptions": Row(name_organization, roles=BUYERS),
    "list_webhook_deliveries": Row(make_webhook_deliveries, roles=ADMINS, foreign="webhook_endpoint_not_found"),
    "list_webhook_endpoints": Row(name_organization, roles=ADMINS),
    "list_tickets": Row(name_organization, roles=EVERYBODY),
    "open_portal": Row(find_portal, roles=BUYERS),
    "preview_organization_deletion": Row(preview_organization, roles=OWNERS),
    "preview_project_deletion": Row(preview_project, roles=ADMINS, foreign="project_not_found"),
    "put_abuse_report": Row(make_abuse_report),
    "put_allowed_hosts": Row(
        fill_allowed_hosts, roles=ADMINS, foreign="project_not_found", audited="project.allowed_hosts_changed"
    ),
    "put_offer": Row(fill_offer),
    "put_payment_provider": Row(plain(path={"provider": "card"}, json={"enabled": False})),
    "put_plan": Row(fill_plan),
    "put_audience_contract": Row(fill_contract),
    "put_accounting_customer": Row(fill_accounting_customer),
    # Null changes nothing: every test shares the Core under test.
    "put_platform_configuration": Row(plain(path={"name": "smtp_host"}, json={"value": None})),
    "put_platform_secret": Row(plain(path={"name": "smtp_password"}, json={"value": "a secret of the sweep"})),
    "read_audience_report": Row(make_integration, roles=READERS, foreign="integration_not_found"),
    "read_legacy_report": Row(name_project, roles=READERS, foreign="project_not_found"),
    "receive_card_event": Row(sign_card_event),
    "receive_checkout_notification": Row(notify_of_checkout),
    "receive_checkout_query": Row(notify_of_checkout),
    "receive_local_notification": Row(notify_of_payment),
    "receive_local_query": Row(notify_of_payment),
    "receive_desk_delivery": Row(sign_desk_delivery),
    "recover_code": Row(issue_one_before, roles=ADMINS, foreign="code_issue_not_found"),
    "recover_codes": Row(issue_two_before, roles=ADMINS, foreign="code_issue_not_found"),
    # Everybody may leave: test_remove_member.py.
    "remove_member": Row(remove_member, roles=EVERYBODY, foreign="member_not_found", audited="member.removed"),
    "reply_to_ticket": Row(make_reply, roles=EVERYBODY, foreign="ticket_not_found", audited="support.ticket_replied"),
    "rename_api_key": Row(rename_key, roles=ADMINS, foreign="api_key_not_found", audited="api_key.renamed"),
    "rename_integration": Row(
        rename_integration, roles=ADMINS, foreign="integration_not_found", audited="audience.integration_renamed"
    ),
    "rename_organization": Row(rename_organization, roles=ADMINS, audited="organization.updated"),
    "rename_project": Row(rename_project, roles=ADMINS, foreign="project_not_found", audited="project.updated"),
    "render_code": Row(make_code, roles=READERS, foreign="code_not_found"),
    "replace_integration_core_key": Row(
        make_integration, roles=ADMINS, foreign="integration_not_found", audited="audience.integration_core_key_update"
    ),
    "replay_webhook_events": Row(replay_webhooks, roles=ADMINS, foreign="webhook_endpoint_not_found"),
    "report_abuse": Row(plain(json={"token": "brd_" + "A" * 16, "category": "spam", "text": "It is spam."})),
    "resolve": Row(make_token),
    "restore_organization": Row(name_suspended_organization),
    "retry_platform_job": Row(make_failed_job),
    "revoke_api_key": Row(make_key, roles=ADMINS, foreign="api_key_not_found", audited="api_key.revoked"),
    "revoke_code": Row(make_code, roles=ADMINS, foreign="code_not_found", audited="code.revoked"),
    "revoke_codes": Row(select_code, roles=ADMINS, foreign="code_not_found", audited="code.batch_revoked"),
    "revoke_integration": Row(
        make_integration, roles=ADMINS, foreign="integration_not_found", audited="audience.integration_revocation"
    ),
    "revoke_invitation": Row(
        make_invitation, roles=ADMINS, foreign="invitation_not_found", audited="invitation.revoked"
    ),
    "rotate_webhook_secret": Row(
        make_webhook_endpoint,
        roles=ADMINS,
        foreign="webhook_endpoint_not_found",
        audited="webhook_endpoint.secret_rotated",
    ),
    "rotate_api_key_secret": Row(make_key, roles=ADMINS, foreign="api_key_not_found", audited="api_key.secret_rotated"),
    "rotate_integration_secret": Row(
        make_integration, roles=ADMINS, foreign="integration_not_found", audited="audience.integration_secret_rotation"
    ),
    "stop_campaign": Row(make_campaign, roles=ADMINS, foreign="campaign_not_found", audited="campaign.stopped"),
    "summarise_campaign": Row(make_campaign, roles=READERS, foreign="campaign_not_found"),
    "update_campaign": Row(change_campaign, roles=ADMINS, foreign="campaign_not_found", audited="campaign.updated"),
    "suspend_organization": Row(fill_suspension),
    "test_platform_system": Row(name_untested_system),
    "test_webhook_endpoint": Row(make_unreachable_endpoint, roles=ADMINS, foreign="webhook_endpoint_not_found"),
    "update_webhook_endpoint": Row(
        change_webhook_endpoint,
        roles=ADMINS,
        foreign="webhook_endpoint_not_found",
        audited="webhook_endpoint.updated",
    ),
    "verify_audit_log": Row(name_organization, roles=ADMINS),
}


CALLS: Final[Mapping[str, Prepare]] = {name: row.prepare for name, row in ROWS.items()}
