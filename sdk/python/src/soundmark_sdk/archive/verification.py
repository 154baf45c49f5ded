"""Verify an archive without trusting its source: the seal, then the file from its first byte to its last."""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from soundmark_sdk import base64url, timestamps
from soundmark_sdk.archive.ending import ArchiveEnding, ArchiveSeal, read_ending
from soundmark_sdk.archive.failures import ArchiveRejected
from soundmark_sdk.archive.records import ArchiveReader
from soundmark_sdk.archive.shapes import LAYOUTS, ArchiveFormat, ArchiveLayout, RecordList
from soundmark_sdk.closed_shapes import find_misfit, is_count
from soundmark_sdk.failures import KeyUnknown, Unverifiable
from soundmark_sdk.keys import KeySet
from soundmark_sdk.strict_json import JsonValue, are_identical
from soundmark_sdk.verification import canonicalize_signed, digest_token

# The number of bytes that were verified so far, and of all bytes.
VerificationProgress: TypeAlias = Callable[[int, int], None]

_CHUNK_BYTES: Final = 1024 * 1024
# The members that a record of a Code shares with its signed object.
_SIGNED_FACTS: Final = (
    *("xr_id", "organization_id", "project_id", "campaign_id", "issuer", "issued_at", "expires_at", "intent"),
)


@dataclass(frozen=True, slots=True)
class VerifiedArchive:
    """The facts of an archive that is exactly what the service sealed.

    `keys_are_trusted` says whether the keys came from outside. If not, the archive was verified with the keys that it
    holds itself, so it is consistent, but anyone could have created it. `key_ids` are the keys that signed it and its
    Codes; `key_id` is that of the seal.
    """

    format: ArchiveFormat
    subject_id: str
    organization_id: str
    exported_at: datetime
    counts: Mapping[str, int]
    digest: str
    key_id: str
    key_ids: tuple[str, ...]
    keys_are_trusted: bool


def verify_archive(
    archive: str | os.PathLike[str] | BinaryIO,
    keys: KeySet | None = None,
    *,
    on_progress: VerificationProgress | None = None,
) -> VerifiedArchive:
    """Verify that an archive is complete and unaltered and that the keys' owner issued its Codes; return its facts.

    `archive` is the path of a file, or a binary file that can seek. `keys` are the service's, from
    `read_key_history`; without them the archive is verified with the keys inside it.

    The checks have a fixed order, and the first that fails is named: the shape of the seal; the keys in the file; the
    seal's key, its signature and its digest. Then the file from its first byte to its last: JSON, shape, subject,
    tenant and order of each record, for a Code its key, signature and facts, and for each list its count. At last the
    keys in the file must be exactly those that signed.

    The file is read by lines, so memory does not grow with the number of Codes.

    Raises: ArchiveRejected; OSError. ValueError for a file that cannot seek.
    Source: wire contract, section 8, "Seal".
    """
    if isinstance(archive, (str, os.PathLike)):
        with Path(archive).open("rb") as file:
            return _verify(file, keys, on_progress)
    if not archive.seekable():
        raise ValueError("An archive is verified from a file that can seek.")
    return _verify(archive, keys, on_progress)


def _verify(file: BinaryIO, keys: KeySet | None, on_progress: VerificationProgress | None) -> VerifiedArchive:
    ending = read_ending(file)
    trusted = ending.keys if keys is None else keys
    _verify_seal(file, ending, trusted)
    verifier = _RecordVerifier(ending.seal, trusted)
    digest = hashlib.sha256()
    done = 0

    def take(line: bytes) -> None:
        nonlocal done
        digest.update(line)
        done += len(line)
        if on_progress is not None:
            on_progress(done, ending.seal_start)

    reader = ArchiveReader(file, ending.keys_start, take)
    counts = verifier.verify_records(reader)
    digest.update(ending.unread)
    if base64url.encode(digest.digest()) != ending.seal.digest:
        # Somebody changed the file since its digest was compared.
        raise ArchiveRejected("digest_mismatch", "seal.digest")
    _require_counts(ending.counts, counts)
    _require_keys(ending.keys, trusted, verifier.key_ids)
    return VerifiedArchive(
        format=verifier.format,
        subject_id=ending.seal.subject_id,
        organization_id=verifier.organization_id,
        exported_at=timestamps.parse(ending.seal.exported_at),
        counts=counts,
        digest=ending.seal.digest,
        key_id=ending.seal.key_id,
        key_ids=tuple(sorted(verifier.key_ids)),
        keys_are_trusted=keys is not None,
    )


def _verify_seal(file: BinaryIO, ending: ArchiveEnding, keys: KeySet) -> None:
    seal = ending.seal
    _verify_signature(seal.members, keys, "seal")
    digest = hashlib.sha256()
    left = ending.seal_start
    file.seek(0)
    while left and (chunk := file.read(min(left, _CHUNK_BYTES))):
        digest.update(chunk)
        left -= len(chunk)
    if base64url.encode(digest.digest()) != seal.digest:
        raise ArchiveRejected("digest_mismatch", "seal.digest")


def _verify_signature(members: Mapping[str, Any], keys: KeySet, location: str) -> None:
    try:
        keys.verify(members["key_id"], canonicalize_signed(members), members["signature"])
    except KeyUnknown:
        raise ArchiveRejected("key_unknown", location) from None
    except Unverifiable:
        raise ArchiveRejected("signature_invalid", location) from None


class _RecordVerifier:
    """A verifier of the records of one archive. `key_ids` are those that signed the seal and the Codes so far."""

    def __init__(self, seal: ArchiveSeal, keys: KeySet) -> None:
        self._seal: Final = seal
        self._keys: Final = keys
        self._layout: Final[ArchiveLayout] = LAYOUTS[seal.format]
        self.key_ids: Final = {seal.key_id}
        self.format: Final[ArchiveFormat] = seal.format  # type: ignore[assignment]  # the layouts have no others
        self.organization_id = ""
        # Those of the archive; the only thing that grows with it.
        self._project_ids: Final[set[str]] = set()

    def verify_records(self, reader: ArchiveReader) -> Mapping[str, int]:
        """Verify everything before the keys, and return the lengths of the lists."""
        counts: dict[str, int] = {}
        names = reader.iterate_members()
        for name, member in self._layout.members.items():
            reader.location = name
            if next(names, None) != name:
                raise ArchiveRejected("wrong_shape", name)
            if isinstance(member, RecordList):
                counts[name] = self._verify_list(reader, name, member)
                continue
            value = reader.read_value()
            misfit = find_misfit({name: value}, {name: member}, "")
            if misfit is not None:
                raise ArchiveRejected("wrong_shape", misfit)
            self._take_value(name, value)
        reader.location = "verification_keys"
        if next(names, None) is not None:
            raise ArchiveRejected("wrong_shape", "verification_keys")
        return counts

    def _take_value(self, name: str, value: Any) -> None:
        """Compare a single member with the seal."""
        if name in {"format", "exported_at"}:
            if value != self._seal.members[name]:
                raise ArchiveRejected("wrong_subject", name)
        elif name == "organization_id":
            self.organization_id = value
        elif value["id"] != self._seal.subject_id:
            raise ArchiveRejected("wrong_subject", f"{name}.id")
        elif name == "organization":
            self.organization_id = value["id"]
        else:
            self._require_tenant(value, name)
            self._project_ids.add(value["id"])

    def _verify_list(self, reader: ArchiveReader, name: str, records: RecordList) -> int:
        count = 0
        newest = ("", "")
        for record in reader.iterate_records(name):
            where = reader.location
            misfit = find_misfit(record, records.shape, where)
            if misfit is not None:
                raise ArchiveRejected("wrong_shape", misfit)
            assert isinstance(record, dict), "every record is an object"
            self._require_tenant(record, where)
            place = (str(record[records.order[0]]), str(record[records.order[1]]))
            if place <= newest:
                raise ArchiveRejected("out_of_order", where)
            newest = place
            if name == "codes":
                self._verify_code(record, where)
            elif name == "projects":
                self._project_ids.add(str(record["id"]))
            count += 1
        return count

    def _require_tenant(self, record: Mapping[str, Any], where: str) -> None:
        if record.get("organization_id", self.organization_id) != self.organization_id:
            raise ArchiveRejected("foreign_record", f"{where}.organization_id")
        if "project_id" in record and record["project_id"] not in self._project_ids:
            raise ArchiveRejected("foreign_record", f"{where}.project_id")

    def _verify_code(self, record: Mapping[str, Any], where: str) -> None:
        signed = record["signed_code"]
        _verify_signature(signed, self._keys, f"{where}.signed_code")
        self.key_ids.add(signed["key_id"])
        facts = {
            **{name: signed[name] for name in _SIGNED_FACTS},
            "audience_enabled": signed["policy"]["audience_measurement"],
            "audience_integration_id": signed["policy"]["audience_integration_id"],
            "broadcast_frame": f"XRC1:{record['broadcast_token']}",
        }
        for name, fact in facts.items():
            if not are_identical(record[name], fact):
                raise ArchiveRejected("altered_code", f"{where}.{name}")
        if digest_token(record["broadcast_token"]) != signed["token_digest"]:
            raise ArchiveRejected("altered_code", f"{where}.broadcast_token")
        if signed["expires_at"] <= signed["issued_at"]:
            raise ArchiveRejected("altered_code", f"{where}.expires_at")


def _require_counts(stated: JsonValue, counts: Mapping[str, int]) -> None:
    misfit = find_misfit(stated, dict.fromkeys(counts, is_count), "counts")
    if misfit is not None:
        raise ArchiveRejected("wrong_shape", misfit)
    assert isinstance(stated, dict), "the counts are an object"
    for name, count in counts.items():
        if stated[name] != count:
            raise ArchiveRejected("wrong_count", f"counts.{name}")


def _require_keys(inside: KeySet, trusted: KeySet, key_ids: set[str]) -> None:
    """Accept only a file that holds exactly the keys that signed, as those that are trusted are."""
    if inside.by_id.keys() != key_ids:
        raise ArchiveRejected("wrong_keys", "verification_keys")
    if any(bytes(inside.by_id[key_id]) != bytes(trusted.by_id[key_id]) for key_id in key_ids):
        raise ArchiveRejected("wrong_keys", "verification_keys")
