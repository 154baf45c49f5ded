"""Every error code that is Core's own, alphabetically.

Those that every component has stand in `kit.problems`, those that Audience raises in `wire.private.problems`.
"""

from soundmark.kit.http.problems import Kind, Problem


class AlreadyAMember(Problem):
    """Whoever accepts the invitation belongs to the organisation already; the role stays."""

    kind, code, title = Kind.CONFLICT, "already_a_member", "You are a member of this organisation already."


class ApiKeyNotActive(Problem):
    """The act needs an active, unexpired server key."""

    kind, code, title = Kind.CONFLICT, "api_key_not_active", "This key is revoked or expired."


class ApiKeyNotFound(Problem):
    """No such server key in this organisation."""

    kind, code, title = Kind.MISSING, "api_key_not_found", "There is no such key here."


class AudienceUnavailable(Problem):
    """The Audience component is down, late, busy, or answered what it should not."""

    kind, code, title = Kind.UNAVAILABLE, "audience_unavailable", "Audience cannot be asked right now."


class AudioBundleTooLarge(Problem):
    """The WAV files together are larger than a bundle may be."""

    kind, code, title = Kind.INVALID, "audio_bundle_too_large", "These WAV files are too large for one bundle."


class AudioUnavailable(Problem):
    """The audio component is down, late, busy, or answered what is no WAV."""

    kind, code, title = Kind.UNAVAILABLE, "audio_unavailable", "Audio cannot be rendered right now."


class CampaignArchived(Problem):
    """The campaign was archived or stopped, and stays so."""

    kind, code, title = Kind.CONFLICT, "campaign_archived", "This campaign is archived."


class CampaignNameConflict(Problem):
    """Another campaign of the project has this name."""

    kind, code, title = Kind.CONFLICT, "campaign_name_conflict", "Another campaign of this project has this name."


class CampaignNotFound(Problem):
    """No such campaign in this organisation and project."""

    kind, code, title = Kind.MISSING, "campaign_not_found", "There is no such campaign here."


class CampaignNotOpen(Problem):
    """The campaign's schedule does not allow issuance now."""

    kind, code, title = Kind.CONFLICT, "campaign_not_open", "This campaign has not begun, or is over."


class CodeExpired(Problem):
    """The Code's time is over; it was not revoked."""

    kind, code, title = Kind.GONE, "code_expired", "This Code has expired."


class CodeIssueNotFound(Problem):
    """No issuance with this idempotency key is remembered: it never was, or a day ago."""

    kind, code, title = Kind.MISSING, "code_issue_not_found", "No issuance is remembered for this Idempotency-Key."


class CodeNotActive(Problem):
    """The act needs an active, unexpired Code."""

    kind, code, title = Kind.CONFLICT, "code_not_active", "This Code is revoked or expired."


class CodeNotFound(Problem):
    """No such Code in this organisation and project."""

    kind, code, title = Kind.MISSING, "code_not_found", "There is no such Code here."


class CodeUnavailable(Problem):
    """Unknown, revoked, malformed or not verifiable: receivers cannot tell which."""

    kind, code, title = Kind.MISSING, "code_unavailable", "No Code can be answered for this token."


class EmailNotVerified(Problem):
    """The identity provider has not verified the caller's e-mail address."""

    kind, code, title = Kind.FORBIDDEN, "email_not_verified", "Your e-mail address is not verified."


class Forbidden(Problem):
    """The caller's role does not allow the act."""

    kind, code, title = Kind.FORBIDDEN, "forbidden", "Your role does not allow this."


class IdempotencyConflict(Problem):
    """The idempotency key belongs to another request, or to the other issuance route."""

    kind, code, title = Kind.CONFLICT, "idempotency_conflict", "This Idempotency-Key was used for another request."


class IdentityProviderUnavailable(Problem):
    """The identity provider does not answer, and the token's key is none that it was seen to have."""

    kind, code, title = Kind.UNAVAILABLE, "identity_provider_unavailable", "Logins cannot be checked right now."


class InsufficientScope(Problem):
    """The server key was not made for the act."""

    kind, code, title = Kind.FORBIDDEN, "insufficient_scope", "This key has not the scope that this needs."


class IntentNotCanonical(Problem):
    """The intent has no canonical form, or one beyond the limits."""

    kind, code, title = Kind.INVALID, "intent_not_canonical", "The intent cannot be written as canonical JSON."


class InvitationInvalid(Problem):
    """Unknown, expired, revoked, used or for another address: whoever asks cannot tell which."""

    kind, code, title = Kind.MALFORMED, "invitation_invalid", "This invitation cannot be accepted."


class InvitationNotFound(Problem):
    """No such invitation in this organisation."""

    kind, code, title = Kind.MISSING, "invitation_not_found", "There is no such invitation here."


class InvitationNotPending(Problem):
    """The invitation is accepted, expired or revoked."""

    kind, code, title = Kind.CONFLICT, "invitation_not_pending", "This invitation is not pending any more."


class LastOwner(Problem):
    """The organisation would have no owner any more."""

    kind, code, title = Kind.CONFLICT, "last_owner", "An organisation keeps at least one owner."


class MemberNotFound(Problem):
    """No such member in this organisation."""

    kind, code, title = Kind.MISSING, "member_not_found", "There is no such member here."


class MfaRequired(Problem):
    """The act needs a session with a second factor."""

    kind, code, title = Kind.FORBIDDEN, "mfa_required", "This needs a login with a second factor."


class OrganizationLimitReached(Problem):
    """The person owns as many organisations as one person may."""

    kind, code, title = Kind.CONFLICT, "organization_limit_reached", "One person may not own more organisations."


class OrganizationNotFound(Problem):
    """No such organisation, or one that the caller has no part in: both alike."""

    kind, code, title = Kind.MISSING, "organization_not_found", "There is no such organisation here."


class PlatformAdminRequired(Problem):
    """The act is for those who run the platform."""

    kind, code, title = Kind.FORBIDDEN, "platform_admin_required", "This is for administrators of the platform."


class ProjectNameConflict(Problem):
    """Another project of the organisation has this name."""

    kind, code, title = Kind.CONFLICT, "project_name_conflict", "Another project has this name."


class ProjectNotFound(Problem):
    """No such project in this organisation."""

    kind, code, title = Kind.MISSING, "project_not_found", "There is no such project here."


class QuotaExceeded(Problem):
    """The organisation has issued what its plan allows this month, or would."""

    kind, code, title = Kind.LIMITED, "quota_exceeded", "The monthly quota of Codes does not allow this."


class ResourceDeletionInProgress(Problem):
    """The organisation or the project is being deleted, and nothing is begun in it any more."""

    kind, code, title = Kind.CONFLICT, "resource_deletion_in_progress", "This is being deleted."


class UserTokenRequired(Problem):
    """Only a person may do this; a server key may not."""

    kind, code, title = Kind.FORBIDDEN, "user_token_required", "This needs a person's login, not a server key."
