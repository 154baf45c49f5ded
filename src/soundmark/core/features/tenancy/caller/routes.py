"""The route by which a caller learns what its credential is."""

from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import AnyCaller
from soundmark.core.features.tenancy.caller.wire import CallerView, caller_view

operations = Operations("Caller")


@operations.add("GET", "/v1/caller", Operation("caller.read", tenant="none"))
async def get_caller(caller: AnyCaller) -> CallerView:
    """Read who the credential in use stands for, and the organisation and project that a server key belongs to."""
    return caller_view(caller)
