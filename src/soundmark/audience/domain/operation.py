"""The operations that Core requests; each is carried out once, however often Core sends the request."""

from dataclasses import dataclass

from soundmark.audience.domain.integration import Workspace
from soundmark.wire.private.integrations import OperationAction


@dataclass(frozen=True, slots=True)
class RequestedOperation:
    """A requested operation; `integration_id` is None if the operation creates the integration."""

    id: str
    action: OperationAction
    workspace: Workspace
    integration_id: str | None


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that was carried out. `answer` is the JSON text of its response, without any secret."""

    id: str
    organization_id: str
    project_id: str
    integration_id: str
    action: OperationAction
    answer: str
