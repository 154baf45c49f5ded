"""Examples of the published keys: the example key, and the one that it replaced."""

from datetime import timedelta
from typing import Final

from soundmark.core.edge.examples import EXAMPLE_KEY, ISSUED_AT
from soundmark.core.features.codes.resolution.wire import KeyHistory, KeySet, verification_key
from soundmark.core.views.signing_keys import historic_key
from soundmark.kit.crypto.signing import SigningKey

_RETIRED: Final = SigningKey.from_seed("sig_cmV0aXJlZC1rZXktZXhhbX", bytes(range(64, 96)))
_ACTIVATED_AT: Final = ISSUED_AT - timedelta(days=30)

KEYS: Final = KeySet(keys=[verification_key(EXAMPLE_KEY.key_id, EXAMPLE_KEY.public_key, "active")])
KEY_HISTORY: Final = KeyHistory(
    keys=[
        historic_key(
            _RETIRED.key_id,
            _RETIRED.public_key,
            "retired",
            activated_at=_ACTIVATED_AT - timedelta(days=365),
            superseded_at=_ACTIVATED_AT,
        ),
        historic_key(
            EXAMPLE_KEY.key_id, EXAMPLE_KEY.public_key, "active", activated_at=_ACTIVATED_AT, superseded_at=None
        ),
    ]
)
