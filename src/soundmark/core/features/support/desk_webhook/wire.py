"""What the support desk is answered."""

from typing import Literal

from soundmark.wire.shape import Wire


class DeskAnswer(Wire):
    """The outcome of a delivery from the desk."""

    status: Literal["processed", "duplicate", "ignored"]
