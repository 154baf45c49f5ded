"""The request and response shapes of Codes that exist."""

from pydantic import ConfigDict

from soundmark.core.edge.parameters import UnboundedId
from soundmark.wire.selection import Selection
from soundmark.wire.shape import Wire
from soundmark.wire.xr_code import CodeSummary


class RevokeCodes(Wire):
    """Codes of one project, all of which are to be revoked."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"project_id": "prj_bW9ybmluZy1zaG93LWV4", "xr_ids": ["xr_bm9yZGxpY2h0LWV4YW1wbA"]}]
        }
    )

    project_id: UnboundedId
    xr_ids: Selection


class RevokedCodes(Wire):
    """How many Codes were asked for, revoked now, and over already."""

    requested_count: int
    revoked_count: int
    unchanged_count: int


class CodePage(Wire):
    """Codes, newest first, without intents and signed records."""

    data: list[CodeSummary]
    next_cursor: str | None
