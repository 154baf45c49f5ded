"""What the card provider takes, but Soundmark must not send."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.requests import Request

from soundmark.sandbox.card.objects import BASIL

Require = Callable[[object, str], None]

_FORM: Final = "application/x-www-form-urlencoded"
_KEY_CHARS_MIN: Final = 16
_OF_SESSION: Final = {
    *("mode", "line_items", "client_reference_id", "metadata", "subscription_data", "success_url", "cancel_url"),
    *("customer", "customer_email", "expires_at"),
}
_OF_PORTAL: Final = {"customer", "return_url"}


def check_headers(require: Require, request: Request) -> None:
    """Note another version, telemetry, and a request that changes something without a proper key or media type."""
    version = request.headers.get("stripe-version")
    require(version == BASIL, f"card: the version is {version}")
    agent = request.headers.get("x-stripe-client-user-agent", "")
    is_silent = "x-stripe-client-telemetry" not in request.headers and "telemetry_id" not in agent
    require(is_silent, "card: there is telemetry")
    if request.method == "POST":
        media_type = request.headers.get("content-type")
        require(media_type == _FORM, f"card: the media type is {media_type}")
        key_chars_count = len(request.headers.get("idempotency-key", ""))
        require(key_chars_count >= _KEY_CHARS_MIN, f"card: the idempotency key has {key_chars_count} characters")


def check_session(require: Require, params: Mapping[str, Any]) -> None:
    """Note parameters of a checkout that Soundmark has no use for."""
    unexpected = sorted(params.keys() - _OF_SESSION)
    require(not unexpected, f"card: these parameters are unexpected: {unexpected}")
    require(params["line_items"][0].get("quantity") == "1", "card: the quantity is not 1")


def check_portal(require: Require, params: Mapping[str, Any]) -> None:
    """Note other parameters of a portal than Soundmark has a use for."""
    different = sorted(params.keys() ^ _OF_PORTAL)
    require(not different, f"card: these parameters are missing or unexpected: {different}")
