"""The request and response shapes of members."""

from pydantic import ConfigDict

from soundmark.core.domain.tenancy.scope import Role
from soundmark.core.views.tenancy import MemberView
from soundmark.wire.shape import Wire


class ChangeMember(Wire):
    """A new role for a member."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "admin"}]})

    role: Role


class MemberPage(Wire):
    """Members, newest first; members created at the same time are in descending order of subject id."""

    data: list[MemberView]
    next_cursor: str | None
