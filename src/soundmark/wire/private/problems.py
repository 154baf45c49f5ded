"""The problems that Audience raises and Core passes on to its own callers, alphabetically.

Every other problem of a private component means for Core that the component is unavailable.
"""

from soundmark.kit.http.problems import Kind, Problem


class EntitlementRequired(Problem):
    """The organisation has no entitlement of this mode, or it has ended."""

    kind, code, title = Kind.CONFLICT, "entitlement_required", "This needs an Audience entitlement that holds now."


class EventConflict(Problem):
    """The event id was used for other bytes."""

    kind, code, title = Kind.CONFLICT, "event_conflict", "This event id belongs to an event with another body."


class EventQuotaExceeded(Problem):
    """The organisation's events of this month fill its quota in this mode; this event was not recorded."""

    kind, code, title = Kind.LIMITED, "event_quota_exceeded", "This month's quota of events is used up."


class IntegrationNotFound(Problem):
    """This organisation and project have no such Audience integration."""

    kind, code, title = Kind.MISSING, "integration_not_found", "There is no such Audience integration here."


class IntegrationRevoked(Problem):
    """The integration was revoked for good: it records nothing, and its secret cannot change."""

    kind, code, title = Kind.CONFLICT, "integration_revoked", "This Audience integration is revoked."


class ProofInvalid(Problem):
    """The proof does not vouch for this event: its signature, its time or its subject is wrong."""

    kind, code, title = Kind.INVALID, "proof_invalid", "The proof does not hold for this event."


class ProofReplayed(Problem):
    """The proof already vouched for another event."""

    kind, code, title = Kind.CONFLICT, "proof_replayed", "This proof was spent by another event."


class ReportTooLarge(Problem):
    """A dimension of the report has more entries than a report may hold."""

    kind, code, title = Kind.INVALID, "report_too_large", "A dimension of this report has too many entries."
