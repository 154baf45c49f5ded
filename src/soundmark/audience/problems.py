"""Audience's own problems. Those that Core passes on are in `soundmark.wire.private.problems`."""

from soundmark.kit.http.responses.problems import Kind, Problem


class OperationConflict(Problem):
    """The operation id belongs to another operation: the sender's mistake, and nothing was done."""

    kind, code, title = Kind.CONFLICT, "operation_conflict", "This operation id was used for another operation."


class TenantPurged(Problem):
    """Everything of this organisation or project is deleted, or is being deleted, so nothing is added to it."""

    kind, code, title = Kind.CONFLICT, "tenant_purged", "This organisation or project has left."
