"""Audience's own problems. Those that Core passes on are in `soundmark.wire.private.problems`."""

from soundmark.kit.http.problems import Kind, Problem


class OperationConflict(Problem):
    """The operation id belongs to another operation: the sender's mistake, and nothing was done."""

    kind, code, title = Kind.CONFLICT, "operation_conflict", "This operation id was used for another operation."
