"""The building blocks of private shapes."""

from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints

from soundmark.kit.http.requests.strict_json import INTEGER_MAX
from soundmark.kit.text import base64url
from soundmark.wire.shape import KeyId, Wire

ID_PATTERN: Final = r"^[a-z]{2,8}_[A-Za-z0-9_-]{1,128}$"

_PUBLIC_KEY_CHARS: Final = 43  # 32 bytes.


def _check_public_key(text: str) -> str:
    base64url.decode(text)
    return text


TenantId = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
Count = Annotated[int, Field(ge=0, le=INTEGER_MAX)]
PublicKeyText = Annotated[
    str,
    StringConstraints(min_length=_PUBLIC_KEY_CHARS, max_length=_PUBLIC_KEY_CHARS),
    AfterValidator(_check_public_key),
]


class ProjectQuery(Wire):
    """The query of a call about one project. For the caller, nothing outside that project exists."""

    organization_id: TenantId
    project_id: TenantId


class CoreKey(Wire):
    """A public Core key: 32 bytes in base64url."""

    key_id: KeyId
    public_key: PublicKeyText

    @classmethod
    def from_bytes(cls, key_id: str, public_key: bytes) -> "CoreKey":
        """Return the shape of a key."""
        return CoreKey(key_id=key_id, public_key=base64url.encode(public_key))
