"""The problems that Audience raises and Core passes on to its own callers, alphabetically.

Core treats every other problem of a private component as that component being unavailable.
"""

from soundmark.kit.http.responses.problems import Kind, Problem


class EntitlementRequired(Problem):
    """The organisation has no entitlement for this mode, or the entitlement has ended."""

    kind, code, title = Kind.CONFLICT, "entitlement_required", "This requires an active Audience entitlement."


class EventConflict(Problem):
    """The event id was already used for an event with different bytes."""

    kind, code, title = Kind.CONFLICT, "event_conflict", "This event id was used for an event with a different body."


class EventQuotaExceeded(Problem):
    """The organisation has used up this month's quota of events in this mode. The event was not recorded."""

    kind, code, title = Kind.LIMITED, "event_quota_exceeded", "This month's quota of events is used up."


class IntegrationNotFound(Problem):
    """The organisation or the project has no such Audience integration."""

    kind, code, title = Kind.MISSING, "integration_not_found", "Audience integration not found."


class IntegrationRevoked(Problem):
    """The integration was revoked, which is final: it records nothing, and it cannot be changed."""

    kind, code, title = Kind.CONFLICT, "integration_revoked", "This Audience integration is revoked."


class OrganizationSuspended(Problem):
    """The platform suspended the organisation. None of its Codes resolves, and nothing is added or measured."""

    kind, code, title = Kind.FORBIDDEN, "organization_suspended", "This organisation is suspended."


class ProofInvalid(Problem):
    """The proof does not cover this event: its signature, its time or its subject is wrong."""

    kind, code, title = Kind.INVALID, "proof_invalid", "The proof is not valid for this event."


class ProofReplayed(Problem):
    """The proof was already used for another event."""

    kind, code, title = Kind.CONFLICT, "proof_replayed", "Another event has used this proof."


class ReportTooLarge(Problem):
    """A dimension of the report has more entries than a report can contain. Choose a shorter period or a filter."""

    kind, code, title = Kind.INVALID, "report_too_large", "A dimension of this report has too many entries."
