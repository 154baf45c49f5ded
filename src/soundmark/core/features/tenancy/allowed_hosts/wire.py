"""The request and response shapes of allowed hosts."""

from typing import Annotated

from pydantic import AfterValidator, ConfigDict, FailFast, Field, StringConstraints

from soundmark.core.domain.tenancy.allowed_hosts import HOST_CHARS_MAX, HOSTS_MAX, parse_host
from soundmark.wire.shape import Timestamp, Wire


def _require_different(hosts: list[str] | None) -> list[str] | None:
    """Raises: ValueError."""
    if hosts is not None and len(set(hosts)) < len(hosts):
        raise ValueError("must not contain a host twice")
    return hosts


_Host = Annotated[str, StringConstraints(min_length=1, max_length=HOST_CHARS_MAX), AfterValidator(parse_host)]
_Hosts = Annotated[
    list[_Host] | None,
    Field(
        max_length=HOSTS_MAX,
        description="DNS names in A-label form; `*.` allows every name below, and not the name itself. Null allows "
        "everything, an empty list no link.",
        json_schema_extra={"uniqueItems": True},
    ),
    FailFast(),
    AfterValidator(_require_different),
]


class PutAllowedHosts(Wire):
    """The hosts to which intents may lead."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"hosts": ["example.org", "*.example.org"]}]})

    hosts: _Hosts


class AllowedHostsView(Wire):
    """The hosts to which intents of a project may lead; null allows everything."""

    project_id: str
    hosts: list[str] | None
    updated_at: Annotated[Timestamp | None, Field(description="When they were last changed; null if never.")]
