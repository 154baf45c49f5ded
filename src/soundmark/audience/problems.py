"""The problems that are Audience's own. Those that Core passes on stand in `soundmark.wire.private.problems`."""

from soundmark.kit.http.problems import Kind, Problem


class OperationConflict(Problem):
    """The operation id belongs to another operation: the sender's mistake, and nothing was done."""

    kind, code, title = Kind.CONFLICT, "operation_conflict", "This operation id was used for another operation."
