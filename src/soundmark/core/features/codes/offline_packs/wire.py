"""The request for an offline pack."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from soundmark.core.edge.examples import CAMPAIGN
from soundmark.core.edge.ids import UnboundedId
from soundmark.wire.offline_pack import VALID_FOR_MAX, VALID_FOR_MIN
from soundmark.wire.shape import Wire

_MIN_S: Final = int(VALID_FOR_MIN.total_seconds())
_MAX_S: Final = int(VALID_FOR_MAX.total_seconds())


class MakeOfflinePack(Wire):
    """The Codes of a pack, and for how long receivers may answer from it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"campaign_id": CAMPAIGN.id, "valid_for_s": 21_600}]})

    campaign_id: Annotated[UnboundedId | None, Field(description="Null for the whole project.")]
    valid_for_s: Annotated[int, Field(ge=_MIN_S, le=_MAX_S)]
