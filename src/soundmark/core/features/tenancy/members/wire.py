"""The request and response shapes of members."""

from pydantic import ConfigDict

from soundmark.core.domain.tenancy.member import Member
from soundmark.core.domain.tenancy.scope import Role
from soundmark.wire.shape import Timestamp, Wire


class ChangeMember(Wire):
    """A new role for a member."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "admin"}]})

    role: Role


class MemberView(Wire):
    """A person's membership of an organisation."""

    subject_id: str
    email: str
    role: Role
    created_at: Timestamp


class MemberPage(Wire):
    """Members, newest first; those created at the same time in descending order of subject id."""

    data: list[MemberView]
    next_cursor: str | None


def member_view(member: Member) -> MemberView:
    """Return the view of one member."""
    return MemberView(subject_id=member.subject_id, email=member.email, role=member.role, created_at=member.created_at)
