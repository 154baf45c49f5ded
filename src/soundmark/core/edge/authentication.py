"""Authentication of requests."""

from starlette.requests import Request

from soundmark.core.access.credentials import Credentials
from soundmark.core.domain.tenancy.scope import Caller, User
from soundmark.kit.http.asgi import Scope
from soundmark.kit.http.requests.bearer_auth import read_bearer
from soundmark.kit.http.requests.refusals import ClientAddresses, RefusalLimit
from soundmark.kit.http.responses.problems import Unauthenticated


async def authenticate(request: Request) -> Caller:
    """Return the caller whom the `Authorization` header identifies.

    Raises: Unauthenticated for missing, repeated, malformed and unknown credentials; RateLimited if the client IP
        address was refused too often; EmailNotVerified; IdentityProviderUnavailable.
    """
    refused: RefusalLimit = request.app.state.refused_credentials
    clients: ClientAddresses = request.app.state.clients
    client = clients.digest_of(request.scope)
    await refused.check(client)
    try:
        return await _find_caller(request)
    except Unauthenticated:
        await refused.count(client)
        raise


def describe_refused(clients: ClientAddresses, scope: Scope) -> dict[str, str]:
    """Return what the log says about the sender of a refused request: the caller's id if known, and the address digest.

    The result never holds an IP address, an e-mail address or a credential.
    """
    caller: Caller | None = scope.get("state", {}).get("caller")
    if caller is None:
        return clients.describe_refused(scope)
    identity = caller.subject_id if isinstance(caller, User) else caller.id
    return {"caller": identity, **clients.describe_refused(scope)}


async def _find_caller(request: Request) -> Caller:
    credential = read_bearer(request.scope["headers"])
    if credential is None:
        raise Unauthenticated
    credentials: Credentials = request.app.state.credentials
    return await credentials.caller_of(credential, request.client.host if request.client else None)
