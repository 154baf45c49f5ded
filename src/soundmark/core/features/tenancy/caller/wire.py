"""The response shape of the caller."""

from typing import Literal

from soundmark.core.access.operator import is_operator
from soundmark.core.domain.tenancy.scope import Caller, KeyScope, ServerKey
from soundmark.wire.shape import Wire


class CallerView(Wire):
    """The caller. Only API keys have `organization_id`, `project_id` and `scopes`; only people have an `email`."""

    type: Literal["user", "api_key", "operator"]
    id: str
    email: str | None
    organization_id: str | None
    project_id: str | None
    scopes: list[KeyScope] | None
    mfa: bool
    platform_admin: bool


def caller_view(caller: Caller) -> CallerView:
    """Return the view of a caller.

    Source: contract, section 2.
    """
    if isinstance(caller, ServerKey):
        return CallerView(
            type="api_key",
            id=caller.id,
            email=None,
            organization_id=caller.organization_id,
            project_id=caller.project_id,
            scopes=sorted(caller.scopes),
            mfa=False,
            platform_admin=False,
        )
    return CallerView(
        type="operator" if is_operator(caller) else "user",
        id=caller.subject_id,
        email=caller.email,
        organization_id=None,
        project_id=None,
        scopes=None,
        mfa=caller.has_mfa,
        platform_admin=caller.is_platform_admin,
    )
