"""The route that identifies the caller's credential."""

from soundmark.core.domain.tenancy.scope import ServerKey
from soundmark.core.edge.examples import API_KEY
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import AnyCaller
from soundmark.core.features.tenancy.caller.wire import CallerView, caller_view

operations = Operations("Caller")


@operations.add(
    "GET",
    "/v1/caller",
    Operation("caller.read", tenant="none"),
    example=caller_view(
        ServerKey(API_KEY.id, API_KEY.organization_id, API_KEY.project_id, frozenset(API_KEY.scopes), digest=b"")
    ),
)
async def get_caller(caller: AnyCaller) -> CallerView:
    """Return the owner of the credential and, for an API key, its organisation and project."""
    return caller_view(caller)
