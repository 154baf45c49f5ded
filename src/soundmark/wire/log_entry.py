"""The entries of the transparency log, for its published schema. `core/domain/log/entry.py` makes and reads them."""

from typing import Annotated, Literal

from pydantic import Field, RootModel, StringConstraints

from soundmark.wire.shape import KeyId, Wire

Commitment = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$"),
    Field(
        description="SHA-256, base64url, of `soundmark/log/v1/`, the kind, `/`, the member's name, a zero byte, and "
        "the RFC 8785 bytes of what is committed to."
    ),
]


class _Entry(Wire):
    v: Literal[1]


class CodeIssuedEntry(_Entry):
    """A Code was issued. `answer` commits to its `xr_id`, `token_digest`, `intent` and `policy`."""

    kind: Literal["code.issued"]
    code: Commitment
    answer: Commitment


class CodeRevokedEntry(_Entry):
    """A Code was revoked. `code` commits to its whole `signed_code`, as in its issuance."""

    kind: Literal["code.revoked"]
    code: Commitment


class KeyEntry(_Entry):
    """A signing key was published, began to sign, was replaced, or was retired. `key` commits to `kid` and `x`."""

    kind: Literal["key.published", "key.activated", "key.superseded", "key.retired"]
    key: Commitment
    kid: KeyId
    x: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]


class AuditHeadEntry(_Entry):
    """An organisation's audit chain had this head, which commits to the organisation, a position and a chain hash."""

    kind: Literal["audit.head"]
    head: Commitment


class DocumentEntry(_Entry):
    """A document was signed: a certificate, the seal of an archive, or an offline pack."""

    kind: Literal["document.sealed"]
    document: Commitment


class LogEntryDocument(
    RootModel[
        Annotated[
            CodeIssuedEntry | CodeRevokedEntry | KeyEntry | AuditHeadEntry | DocumentEntry, Field(discriminator="kind")
        ]
    ]
):
    """One entry of the transparency log. Its leaf is its RFC 8785 form."""
