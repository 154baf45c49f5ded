"""Operations are done once."""

from datetime import datetime
from typing import TypeVar

from soundmark.audience.domain.operation import Asked, Operation
from soundmark.audience.problems import OperationConflict
from soundmark.audience.store import operations
from soundmark.kit.postgres import Tx
from soundmark.wire.shape import Wire

W = TypeVar("W", bound=Wire)


async def recall(tx: Tx, asked: Asked, answer: type[W]) -> W | None:
    """What this operation was answered when it was done; None where it was not, and nobody else does it meanwhile.

    The first thing in a command: whoever repeats it while it is under way waits here.

    Raises: OperationConflict for the id of another operation.
    """
    await operations.lock(tx, asked.id)
    done = await operations.find(tx, asked.id)
    if done is None:
        return None
    is_same = (done.organization_id, done.project_id) == (asked.workspace.organization_id, asked.workspace.project_id)
    is_same = is_same and done.action == asked.action and asked.integration_id in {None, done.integration_id}
    if not is_same:
        raise OperationConflict
    return answer.model_validate_json(done.answer)


async def note(tx: Tx, asked: Asked, integration_id: str, answer: Wire, *, now: datetime) -> None:
    """The operation is done, and is answered so from now on. `answer` holds no secret."""
    operation = Operation(
        id=asked.id,
        organization_id=asked.workspace.organization_id,
        project_id=asked.workspace.project_id,
        integration_id=integration_id,
        action=asked.action,
        answer=answer.model_dump_json(),
    )
    await operations.insert(tx, operation, now=now)
