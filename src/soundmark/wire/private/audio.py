"""The calls from Core to Audio."""

from typing import Final, Literal

from pydantic import ConfigDict

from soundmark.kit.http.requests.private_endpoint import PrivateEndpoint
from soundmark.wire.shape import BroadcastFrame, Wire

Protocol = Literal[3, 4, 5]  # Of ggwave, above hearing: normal, fast, fastest.


class RenderRequest(Wire):
    """A frame to render as sound."""

    model_config = ConfigDict(hide_input_in_errors=True)

    frame: BroadcastFrame
    protocol: Protocol


RENDER: Final = PrivateEndpoint("POST", "/render", bytes, media_type="audio/wav")
