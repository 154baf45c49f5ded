"""Every error code that is Audience's own, alphabetically. Core reads them by their code."""

from soundmark.kit.problems import Kind, Problem


class EntitlementRequired(Problem):
    """The organisation has no entitlement of this mode, or it is over."""

    kind, code, title = Kind.CONFLICT, "entitlement_required", "This needs an Audience entitlement that is not over."


class EventConflict(Problem):
    """The event id was used for other bytes."""

    kind, code, title = Kind.CONFLICT, "event_conflict", "This event id belongs to an event with another body."


class EventQuotaExceeded(Problem):
    """As many events of this month are recorded as the organisation may have in this mode; the event was not."""

    kind, code, title = Kind.LIMITED, "event_quota_exceeded", "This month's quota of events is used up."


class IntegrationNotFound(Problem):
    """No such integration in this organisation and project."""

    kind, code, title = Kind.MISSING, "integration_not_found", "There is no such Audience integration here."


class IntegrationRevoked(Problem):
    """The integration was revoked, and stays so."""

    kind, code, title = Kind.CONFLICT, "integration_revoked", "This Audience integration is revoked."


class OperationConflict(Problem):
    """The operation id belongs to another operation: a mistake of whoever sent it, and nothing was done."""

    kind, code, title = Kind.CONFLICT, "operation_conflict", "This operation id was used for another operation."


class ProofInvalid(Problem):
    """The proof does not vouch for this event: not signed by a trusted key, out of its time, or of something else."""

    kind, code, title = Kind.INVALID, "proof_invalid", "The proof does not hold for this event."


class ProofReplayed(Problem):
    """The proof vouched for another event already."""

    kind, code, title = Kind.CONFLICT, "proof_replayed", "This proof was spent by another event."


class ReportTooLarge(Problem):
    """A dimension of the report has more entries than it may hold."""

    kind, code, title = Kind.INVALID, "report_too_large", "A dimension of this report has more than 10,000 entries."
