"""The request shapes of Code audio."""

from typing import Annotated

from pydantic import ConfigDict, Field

from soundmark.wire.private.audio import Protocol
from soundmark.wire.selection import Selection
from soundmark.wire.shape import Wire


class BundleCodes(Wire):
    """The Codes to render into one file."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"xr_ids": ["xr_bm9yZGxpY2h0LWV4YW1wbA"], "protocol": 4}]}
    )

    xr_ids: Selection
    protocol: Annotated[
        Protocol, Field(description="3: ultrasound normal; 4: ultrasound fast; 5: ultrasound fastest.")
    ] = 4
