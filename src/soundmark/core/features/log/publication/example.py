"""An example of what the log says of itself."""

from typing import Final

from soundmark.core.edge.examples import EXAMPLE_KEY, ISSUED_AT
from soundmark.core.features.log.publication.wire import LogView, LogWitness
from soundmark.kit.crypto.signed_notes import COSIGNATURE, ED25519, VerifierKey
from soundmark.kit.crypto.signing import SigningKey

_WITNESS: Final = SigningKey.from_seed("witness", bytes(range(96, 128)))
_ORIGIN: Final = "soundmark.example.org/v1/log"

LOG: Final = LogView(
    origin=_ORIGIN,
    vkeys=[str(VerifierKey(_ORIGIN, ED25519, EXAMPLE_KEY.public_key))],
    size=48210,
    integrated_at=ISSUED_AT,
    state="integrating",
    stopped_reason=None,
    witnesses=[
        LogWitness(
            name="witness.example.net", vkey=str(VerifierKey("witness.example.net", COSIGNATURE, _WITNESS.public_key))
        )
    ],
)
