"""The response to the providers' notifications."""

from typing import Literal

from soundmark.wire.shape import Wire


class WebhookAnswer(Wire):
    """The outcome of a notification. `pending`: Core judges it again, at the next notification or in a job."""

    status: Literal["processed", "pending", "ignored"]
