"""What the support desk is answered."""

from typing import Literal

from soundmark.wire.shape import Wire


class DeskAnswer(Wire):
    """What became of a delivery of the desk."""

    status: Literal["processed", "duplicate", "ignored"]
