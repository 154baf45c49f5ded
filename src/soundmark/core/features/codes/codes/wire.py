"""The request and response shapes of issued Codes."""

from pydantic import ConfigDict, SerializeAsAny

from soundmark.core.edge.ids import UnboundedId
from soundmark.wire.selection import Selection
from soundmark.wire.shape import Wire
from soundmark.wire.xr_code import CodeSummary, CodeWithIntent


class RevokeCodes(Wire):
    """The Codes of one project to revoke."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"project_id": "prj_bW9ybmluZy1zaG93LWV4", "xr_ids": ["xr_bm9yZGxpY2h0LWV4YW1wbA"]}]
        }
    )

    project_id: UnboundedId
    xr_ids: Selection


class RevokedCodes(Wire):
    """How many Codes the request named, how many it revoked, and how many had already been revoked or expired."""

    requested_count: int
    revoked_count: int
    unchanged_count: int


class CodePage(Wire):
    """Codes, newest first unless the request specifies another order, without signed records.

    The Codes have their intents if the request includes them.
    """

    # In this order, because generated clients take the first that fits. Each is written as what it is, without a trial.
    data: list[SerializeAsAny[CodeWithIntent | CodeSummary]]
    next_cursor: str | None
