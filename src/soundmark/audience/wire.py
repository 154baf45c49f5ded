"""What several features are asked with."""

from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints

from soundmark.audience.domain.integration import TrustedKey
from soundmark.kit import base64url
from soundmark.kit.strict_json import INTEGER_MAX
from soundmark.wire.shape import KeyId, Wire

ID_PATTERN: Final = r"^[a-z]{2,8}_[A-Za-z0-9_-]{1,128}$"
_PUBLIC_KEY_CHARS: Final = 43  # 32 bytes.


def _public_key(text: str) -> str:
    base64url.decode(text)
    return text


TenantId = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
Count = Annotated[int, Field(ge=0, le=INTEGER_MAX)]
PublicKey = Annotated[
    str,
    StringConstraints(min_length=_PUBLIC_KEY_CHARS, max_length=_PUBLIC_KEY_CHARS),
    AfterValidator(_public_key),
]


class CoreKey(Wire):
    """A public key of Core's: 32 bytes in base64url."""

    key_id: KeyId
    public_key: PublicKey

    def trusted(self) -> TrustedKey:
        """The key itself."""
        return TrustedKey(self.key_id, base64url.decode(self.public_key))
