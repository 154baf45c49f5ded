"""The response to the providers' notifications."""

from typing import Literal

from soundmark.wire.shape import Wire


class WebhookAnswer(Wire):
    """What became of a notification. `pending`: it is judged again, by the next one or by ourselves."""

    status: Literal["processed", "pending", "ignored"]
