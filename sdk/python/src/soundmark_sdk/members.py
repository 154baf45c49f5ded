"""Read the members of the wire's closed JSON objects, one by one."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.strict_json import JsonValue

# Id shapes: API v1, "Identifier shapes". The token's length: wire contract, section 1.
BROADCAST_TOKEN: Final = re.compile(r"brd_[A-Za-z0-9_-]{16}")
XR_ID: Final = re.compile(r"xr_[A-Za-z0-9_-]{16,}")
INTEGRATION_ID: Final = re.compile(r"int_[A-Za-z0-9_-]{8,}")
CAMPAIGN_ID: Final = re.compile(r"cmp_[A-Za-z0-9_-]{16,}")
PROOF_ID: Final = re.compile(r"prf_[A-Za-z0-9_-]{16,}")
ORGANIZATION_ID: Final = re.compile(r"org_[A-Za-z0-9_-]+")
PROJECT_ID: Final = re.compile(r"prj_[A-Za-z0-9_-]+")
API_KEY_ID: Final = re.compile(r"key_[A-Za-z0-9_-]+")
CERTIFICATE_ID: Final = re.compile(r"dct_[A-Za-z0-9_-]{22}")
DECODE_CERTIFICATE_ID: Final = re.compile(r"dcc_[A-Za-z0-9_-]{22}")
PACK_ID: Final = re.compile(r"opk_[A-Za-z0-9_-]{22}")
BROADCAST_FRAME: Final = re.compile(r"XRC1:brd_[A-Za-z0-9_-]{16}")
# SHA-256 and Ed25519 signatures in unpadded base64url.
DIGEST: Final = re.compile(r"[A-Za-z0-9_-]{43}")
SIGNATURE: Final = re.compile(r"[A-Za-z0-9_-]{86}")
# Intent types and actions, issuers and key ids are 1 to 160 characters of any kind.
SHORT_TEXT: Final = re.compile(r".{1,160}", re.DOTALL)


def read_members(
    value: JsonValue,
    required: AbstractSet[str],
    optional: AbstractSet[str] = frozenset(),
) -> Mapping[str, JsonValue]:
    """Return the members of a closed object: all of `required`, any of `optional`, and no others.

    Raises: Unverifiable.
    """
    if not isinstance(value, dict) or not (required <= value.keys() <= required | optional):
        raise Unverifiable("An object does not have exactly the members of its shape.")
    return value


def read_text(value: JsonValue, pattern: re.Pattern[str]) -> str:
    """Return a string that matches its pattern from end to end.

    Raises: Unverifiable.
    """
    if not isinstance(value, str) or pattern.fullmatch(value) is None:
        raise Unverifiable("A string does not have its shape.")
    return value


def read_version(value: JsonValue) -> None:
    """Accept only the integer 1; `true` and `1.0` are other versions.

    Raises: Unverifiable.
    """
    if type(value) is not int or value != 1:
        raise Unverifiable("The version is not 1.")


def read_campaign_id(value: JsonValue) -> str | None:
    """Return the campaign's id, or None for a Code without a campaign.

    Raises: Unverifiable.
    """
    return None if value is None else read_text(value, CAMPAIGN_ID)
