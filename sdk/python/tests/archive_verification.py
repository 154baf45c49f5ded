"""Verifying archives in tests, with the keys that their makers use."""

import io
from collections.abc import Iterator
from typing import Any, Final

import pytest
from soundmark_sdk import ArchiveRejected, KeySet, VerifiedArchive, read_key_history, verify_archive

from .archives import ArchiveMaker, make_historic_jwk
from .issuer import Issuer, compact

MIB: Final = 1024 * 1024
OLDER: Final = Issuer(b"the-signing-key-before-this-one!", "key-2026-05")
UNUSED: Final = Issuer(bytes(32), "key-unused")


def make_history(*issuers: Issuer) -> KeySet:
    return read_key_history(compact({"keys": [make_historic_jwk(issuer) for issuer in issuers]}))


HISTORY: Final = make_history(Issuer(), OLDER, UNUSED)


def verify(text: bytes, keys: KeySet | None = HISTORY) -> VerifiedArchive:
    return verify_archive(io.BytesIO(text), keys)


def reject(archive: ArchiveMaker | bytes, keys: KeySet | None = HISTORY) -> tuple[str, str]:
    """Return the failure and the location with which an archive is rejected."""
    with pytest.raises(ArchiveRejected) as rejected:
        verify(archive if isinstance(archive, bytes) else archive.write(), keys)
    failure = rejected.value
    assert str(failure) == f"{failure.failure} at {failure.location}: {failure.explanation}"
    return failure.failure, failure.location


def iterate_members(document: Any, path: str = "") -> Iterator[str]:
    """Yield the place of every member and item, except for those of which there may be any number."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in items:
        yield path + str(name)
        if isinstance(value, dict | list) and name not in {"resource", "keys", "scopes"}:
            yield from iterate_members(value, f"{path}{name}.")
