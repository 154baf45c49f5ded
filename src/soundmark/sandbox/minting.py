"""Ids as other systems mint them: letters and digits only."""

from typing import Final

from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.text.ids import mint

_NO_PUNCTUATION: Final = str.maketrans("-_", "xX")


def mint_id(entropy: Entropy, prefix: str, chars: int = 24) -> str:
    """Return a new id: `prefix` and `chars` letters and digits."""
    return prefix + mint(entropy, "", chars).translate(_NO_PUNCTUATION)
