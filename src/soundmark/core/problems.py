"""The problems that only Core raises, alphabetically.

Those that every component can raise are in `kit.http.responses.problems`, those that Audience raises in
`wire.private.problems`.
"""

from soundmark.kit.http.responses.problems import Kind, Problem


class AbuseReportNotFound(Problem):
    """There is no abuse report with this id."""

    kind, code, title = Kind.MISSING, "abuse_report_not_found", "Abuse report not found."


class AccountingUnavailable(Problem):
    """The accounting system cannot be reached, refuses Core's API key, or does not answer as documented."""

    kind, code, title = Kind.UNAVAILABLE, "accounting_unavailable", "The accounting system is unavailable."


class AlreadyAMember(Problem):
    """The person who accepts the invitation already belongs to the organisation. Their role does not change."""

    kind, code, title = Kind.CONFLICT, "already_a_member", "You are already a member of this organisation."


class ApiKeyNotActive(Problem):
    """Only an active, unexpired API key can be changed in this way."""

    kind, code, title = Kind.CONFLICT, "api_key_not_active", "This API key is revoked or expired."


class ApiKeyNotFound(Problem):
    """The organisation has no such API key."""

    kind, code, title = Kind.MISSING, "api_key_not_found", "API key not found."


class AudienceUnavailable(Problem):
    """The Audience component is down, too slow or busy, or its response was not understood."""

    kind, code, title = Kind.UNAVAILABLE, "audience_unavailable", "Audience is unavailable."


class AudioBundleTooLarge(Problem):
    """The WAV files together exceed the size limit of a bundle."""

    kind, code, title = Kind.INVALID, "audio_bundle_too_large", "These WAV files are too large for one bundle."


class AudioUnavailable(Problem):
    """The Audio component is down, too slow or busy, or its response was not a WAV file."""

    kind, code, title = Kind.UNAVAILABLE, "audio_unavailable", "Audio is unavailable."


class CampaignArchived(Problem):
    """The campaign was archived or stopped. Neither can be undone."""

    kind, code, title = Kind.CONFLICT, "campaign_archived", "This campaign is archived."


class CampaignNameConflict(Problem):
    """Another campaign of the project already has this name."""

    kind, code, title = Kind.CONFLICT, "campaign_name_conflict", "Another campaign of this project has this name."


class CampaignNotFound(Problem):
    """The organisation, or the project named in the request, has no such campaign."""

    kind, code, title = Kind.MISSING, "campaign_not_found", "Campaign not found."


class CampaignNotOpen(Problem):
    """The campaign's schedule does not allow issuance now."""

    kind, code, title = Kind.CONFLICT, "campaign_not_open", "This campaign has not started or has ended."


class CheckoutNotCancellable(Problem):
    """The checkout can still be paid: its provider cannot close the page, or a payment is under way."""

    kind, code, title = Kind.CONFLICT, "checkout_not_cancellable", "This checkout cannot be given up yet."


class CheckoutNotFound(Problem):
    """The organisation has no checkout with this id."""

    kind, code, title = Kind.MISSING, "checkout_not_found", "Checkout not found."


class CodeExpired(Problem):
    """The Code has passed its expiry. It was not revoked."""

    kind, code, title = Kind.GONE, "code_expired", "This Code has expired."


class CodeIssueNotFound(Problem):
    """No issuance is on record for this idempotency key: there never was one, or it is more than 24 hours old."""

    kind, code, title = Kind.MISSING, "code_issue_not_found", "No issuance is on record for this Idempotency-Key."


class CodeNotActive(Problem):
    """Only an active, unexpired Code can be used in this way."""

    kind, code, title = Kind.CONFLICT, "code_not_active", "This Code is revoked or expired."


class CodeNotFound(Problem):
    """The organisation, or the project named in the request, has no such Code."""

    kind, code, title = Kind.MISSING, "code_not_found", "Code not found."


class CodeUnavailable(Problem):
    """The token is unknown or malformed, or its Code is revoked or cannot be verified. Receivers cannot tell which."""

    kind, code, title = Kind.MISSING, "code_unavailable", "No Code is available for this token."


class ConfirmationMismatch(Problem):
    """The confirmation is not the full id of the resource to delete. Nothing was changed."""

    kind, code, title = Kind.INVALID, "confirmation_mismatch", "The confirmation must be the full id."


class ContractReferenceConflict(Problem):
    """A contract reference can belong to only one organisation."""

    kind, code, title = (
        Kind.CONFLICT,
        "contract_reference_conflict",
        "This contract reference belongs to another organisation.",
    )


class CustomerUnavailable(Problem):
    """The portal needs a customer at the card provider, which the first paid checkout creates."""

    kind, code, title = Kind.CONFLICT, "customer_unavailable", "This organisation has no confirmed card payment yet."


class DecodeCertificateNotFound(Problem):
    """The id is wrong, or the certificate's project or organisation was deleted."""

    kind, code, title = Kind.MISSING, "decode_certificate_not_found", "Decode certificate not found."


class DeletionBillingActive(Problem):
    """A subscription that renews itself, or a pending checkout, must end before the organisation can be deleted."""

    kind, code, title = Kind.CONFLICT, "deletion_billing_active", "A subscription or a checkout is still active."


class DeletionCertificateNotFound(Problem):
    """The id is wrong, or the deletion is not complete."""

    kind, code, title = Kind.MISSING, "deletion_certificate_not_found", "Deletion certificate not found."


class DeletionOperationsPending(Problem):
    """The deletion was requested, but waits for earlier operations to end. Repeat the request in a few minutes."""

    kind, code, title = Kind.CONFLICT, "deletion_operations_pending", "Earlier operations are still in progress."


class EmailNotVerified(Problem):
    """The identity provider has not verified the caller's e-mail address. Verify it there, then log in again."""

    kind, code, title = Kind.FORBIDDEN, "email_not_verified", "Your e-mail address is not verified."


class Forbidden(Problem):
    """The caller's role in the organisation does not allow this operation."""

    kind, code, title = Kind.FORBIDDEN, "forbidden", "Your role does not allow this."


class IdempotencyConflict(Problem):
    """The idempotency key was used for a different request, or on the other issuance route. Use a new key."""

    kind, code, title = Kind.CONFLICT, "idempotency_conflict", "This Idempotency-Key was used for a different request."


class IdentityProviderUnavailable(Problem):
    """The identity provider does not answer, and the token names a key that Core has not seen yet."""

    kind, code, title = Kind.UNAVAILABLE, "identity_provider_unavailable", "Logins cannot be verified at the moment."


class InsufficientScope(Problem):
    """The API key lacks the scope that this operation needs. The detail names it."""

    kind, code, title = Kind.FORBIDDEN, "insufficient_scope", "This API key lacks the required scope."


class IntentNotCanonical(Problem):
    """The intent has no canonical form, or its canonical form exceeds the limits."""

    kind, code, title = Kind.INVALID, "intent_not_canonical", "The intent cannot be written as canonical JSON."


class InvitationInvalid(Problem):
    """The invitation is unknown, expired, revoked, used or for another e-mail address. The caller cannot tell which."""

    kind, code, title = Kind.MALFORMED, "invitation_invalid", "This invitation cannot be accepted."


class InvitationNotFound(Problem):
    """The organisation has no such invitation."""

    kind, code, title = Kind.MISSING, "invitation_not_found", "Invitation not found."


class InvitationNotPending(Problem):
    """The invitation was accepted or revoked, or has expired."""

    kind, code, title = Kind.CONFLICT, "invitation_not_pending", "This invitation is no longer pending."


class JobNotFound(Problem):
    """No job failed or runs again under this id."""

    kind, code, title = Kind.MISSING, "job_not_found", "No failed job has this id."


class JobWaiting(Problem):
    """Another run of the same job waits already, and does the same work."""

    kind, code, title = Kind.CONFLICT, "job_waiting", "Another run of this job is waiting, and does the same work."


class LastOwner(Problem):
    """The change would leave the organisation without an owner."""

    kind, code, title = Kind.CONFLICT, "last_owner", "An organisation must have at least one owner."


class LogEntryNotFound(Problem):
    """No entry of the transparency log has this commitment, or it is not published yet. Try again in a few seconds."""

    kind, code, title = Kind.MISSING, "log_entry_not_found", "Log entry not found."


class MemberNotFound(Problem):
    """The organisation has no such member."""

    kind, code, title = Kind.MISSING, "member_not_found", "Member not found."


class MfaRequired(Problem):
    """This requires a login with a second factor."""

    kind, code, title = Kind.FORBIDDEN, "mfa_required", "This requires a login with a second factor."


class OfferNotFound(Problem):
    """The offer is unknown or not for sale."""

    kind, code, title = Kind.MISSING, "offer_not_found", "Offer not found."


class OfflinePackTooLarge(Problem):
    """The pack would have more than 10,000 Codes or 32 MiB. No part of it is returned."""

    kind, code, title = Kind.INVALID, "offline_pack_too_large", "These are too many Codes for one offline pack."


class OrganizationExportTooLarge(Problem):
    """The organisation's archive would exceed the size limit. No part of it is returned."""

    kind, code, title = Kind.INVALID, "organization_export_too_large", "This organisation is too large for one archive."


class OrganizationLimitReached(Problem):
    """The person already owns the maximum number of organisations."""

    kind, code, title = Kind.CONFLICT, "organization_limit_reached", "This person cannot own more organisations."


class OrganizationNotFound(Problem):
    """The organisation does not exist, or the caller does not belong to it. The response is the same in both cases."""

    kind, code, title = Kind.MISSING, "organization_not_found", "Organisation not found."


class PaymentNotVerified(Problem):
    """The payment that the provider reports does not match the checkout."""

    kind, code, title = Kind.INVALID, "payment_not_verified", "The payment could not be verified."


class PaymentProviderUnavailable(Problem):
    """The payment provider is not configured, cannot be reached, refuses, or does not answer as documented."""

    kind, code, title = Kind.UNAVAILABLE, "payment_provider_unavailable", "The payment provider is unavailable."


class PlanNotFound(Problem):
    """The plan is unknown."""

    kind, code, title = Kind.MISSING, "plan_not_found", "Plan not found."


class PlatformAdminRequired(Problem):
    """The operation is reserved for platform administrators."""

    kind, code, title = Kind.FORBIDDEN, "platform_admin_required", "Only a platform administrator can do this."


class ProjectExportTooLarge(Problem):
    """The project's archive would exceed the size limit. No part of it is returned."""

    kind, code, title = Kind.INVALID, "project_export_too_large", "This project is too large for one archive."


class ProjectNameConflict(Problem):
    """Another project of the organisation already has this name."""

    kind, code, title = Kind.CONFLICT, "project_name_conflict", "Another project has this name."


class ProjectNotFound(Problem):
    """The organisation has no such project."""

    kind, code, title = Kind.MISSING, "project_not_found", "Project not found."


class QuotaExceeded(Problem):
    """The request would exceed the number of Codes that the organisation can issue this month."""

    kind, code, title = Kind.LIMITED, "quota_exceeded", "This request would exceed the monthly quota of Codes."


class ReleaseReadinessUnavailable(Problem):
    """The release evidence is missing, malformed, contradictory or more than ten minutes old."""

    kind, code, title = (
        Kind.UNAVAILABLE,
        "release_readiness_unavailable",
        "The release readiness is unknown.",
    )


class ResourceDeletionInProgress(Problem):
    """The organisation or the project is being deleted, and nothing new can be created in it."""

    kind, code, title = Kind.CONFLICT, "resource_deletion_in_progress", "This resource is being deleted."


class SubscriptionActive(Problem):
    """The organisation already has such a subscription. Change a card subscription through the portal."""

    kind, code, title = Kind.CONFLICT, "subscription_active", "A subscription for this product is already active."


class SupportUnavailable(Problem):
    """The support desk is not configured, cannot be reached, or returned an invalid response."""

    kind, code, title = Kind.UNAVAILABLE, "support_unavailable", "The support desk is unavailable."


class ThirdpartyConflict(Problem):
    """A third party of the accounting system can belong to only one organisation."""

    kind, code, title = Kind.CONFLICT, "thirdparty_conflict", "This third party belongs to another organisation."


class TicketNotFound(Problem):
    """The organisation has no such support ticket."""

    kind, code, title = Kind.MISSING, "ticket_not_found", "Support ticket not found."


class UserTokenRequired(Problem):
    """Only a person can do this, not an API key."""

    kind, code, title = Kind.FORBIDDEN, "user_token_required", "This requires a person's login, not an API key."


class WebhookEndpointNotFound(Problem):
    """The organisation has no such webhook endpoint."""

    kind, code, title = Kind.MISSING, "webhook_endpoint_not_found", "Webhook endpoint not found."


class WebhookEventNotFound(Problem):
    """The organisation has no such webhook event, or it is more than 30 days old."""

    kind, code, title = Kind.MISSING, "webhook_event_not_found", "Webhook event not found."
