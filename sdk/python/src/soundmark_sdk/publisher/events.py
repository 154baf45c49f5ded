"""Check events before they are signed: a publisher signs only events of its own integration."""

import re
from typing import Final

from soundmark_sdk.delivery import EVENT_BYTES_MAX, make_failure
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.measuring import COUNTRY, RECEIVER_CLASSES
from soundmark_sdk.members import SHORT_TEXT, XR_ID, read_members, read_text
from soundmark_sdk.shapes import read_measurement_proof
from soundmark_sdk.strict_json import parse

_EVENT_ID: Final = re.compile(r"evt_[A-Za-z0-9_-]{22}")
_MEASUREMENT_TOKEN: Final = re.compile(r"mt_[A-Za-z0-9_-]{43}")
# An RFC 3339 time with any offset; Audience checks it exactly.
_TIME: Final = re.compile(r"[0-9T:.Zz+-]{20,40}")
_EVENT: Final = frozenset(
    {"event_id", "integration_id", "xr_id", "occurred_at", "receiver_class", "measurement_token", "proof"}
)


def check_event(body: bytes, integration_id: str) -> str:
    """Return the id of an event, after checking that all of it is about this integration and one Code.

    Audience verifies the signature and the times of the proof, with the keys that it trusts.

    Raises: DeliveryFailure `event_invalid`, which holds nothing of the body.
    Source: wire contract, section 6, "Event".
    """
    if len(body) > EVENT_BYTES_MAX:
        raise make_failure("event_invalid")
    try:
        event = read_members(parse(body), _EVENT, {"country"})
        proof = read_measurement_proof(event["proof"])
        read_text(event["occurred_at"], _TIME)
        read_text(event["measurement_token"], _MEASUREMENT_TOKEN)
        if event.get("country") is not None:
            read_text(event["country"], COUNTRY)
        receiver_class, xr_id = read_text(event["receiver_class"], SHORT_TEXT), read_text(event["xr_id"], XR_ID)
        event_id = read_text(event["event_id"], _EVENT_ID)
    except Unverifiable:
        raise make_failure("event_invalid") from None
    is_ours = event["integration_id"] == proof.integration_id == integration_id
    if receiver_class not in RECEIVER_CLASSES or not is_ours or xr_id != proof.xr_id:
        raise make_failure("event_invalid")
    return event_id
