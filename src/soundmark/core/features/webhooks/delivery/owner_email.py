"""What owners are told about a disabled endpoint."""

from datetime import datetime
from typing import Final

from soundmark.core.steps.owner_notices import Notice

NOT_TOLD: Final = "webhook_owners_not_told"
_SUBJECT: Final = "A webhook endpoint of your organisation was disabled"
_TEXT: Final = """\
The webhook endpoint {endpoint_id}
of your organisation {organization_id}
has not accepted a message for five days, so Soundmark has disabled it.

When your server accepts messages again, enable the endpoint with

PATCH {base_url}/v1/webhook-endpoints/{endpoint_id}?organization_id={organization_id}
and the body {{"enabled": true}}.

Events are kept for 30 days. To send those that your server missed, request a replay.

You receive this e-mail because you own the organisation.
"""


def make_notice(*, organization_id: str, endpoint_id: str, at: datetime, base_url: str) -> Notice:
    """Return what an owner is told about an endpoint that was disabled at `at`."""
    text = _TEXT.format(endpoint_id=endpoint_id, organization_id=organization_id, base_url=base_url)
    return Notice(_SUBJECT, text, endpoint_id, at, NOT_TOLD, {"endpoint_id": endpoint_id})
