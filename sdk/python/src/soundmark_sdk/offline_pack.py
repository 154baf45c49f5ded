"""Answer from an offline pack: what the service signed for receivers that cannot reach it."""

import copy
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from soundmark_sdk import timestamps
from soundmark_sdk.closed_shapes import (
    Shape,
    encoding,
    is_timestamp,
    is_version_1,
    list_of,
    matching,
    one_of,
    optional,
)
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.keys import KeySet
from soundmark_sdk.members import BROADCAST_TOKEN, CAMPAIGN_ID, PACK_ID, PROJECT_ID, SHORT_TEXT, XR_ID
from soundmark_sdk.records import Intent
from soundmark_sdk.shapes import is_intent
from soundmark_sdk.signed_documents import CertificateRejected, check_shape, check_signature, read_object
from soundmark_sdk.transparency.commitments import Commitment, commit
from soundmark_sdk.transparency.policy import LogPolicy
from soundmark_sdk.transparency.proof import verify_log_proof
from soundmark_sdk.verification import CLOCK_SKEW_MAX, digest_token

PACK_FORMAT: Final = "svc-offline-pack-v1"
PACK_BYTES_MAX: Final = 32 * 1024 * 1024
LIFE_MAX: Final = timedelta(hours=24)

_CODES_MAX: Final = 10_000
_SIGNATURE_BYTES: Final = 64
_DIGEST_BYTES: Final = 32
_SEALED: Final[Commitment] = "document.sealed/document"
_CODE: Final[Shape] = {
    "xr_id": matching(XR_ID),
    "token_digest": encoding(_DIGEST_BYTES),
    "intent": is_intent,
    "expires_at": is_timestamp,
}
_PACK: Final[Shape] = {
    "version": is_version_1,
    "format": one_of(PACK_FORMAT),
    "pack_id": matching(PACK_ID),
    "project_id": matching(PROJECT_ID),
    "campaign_id": optional(matching(CAMPAIGN_ID)),
    "issued_at": is_timestamp,
    "valid_until": is_timestamp,
    "codes": list_of(_CODE, 0, _CODES_MAX),
    "key_id": matching(SHORT_TEXT),
    "signature": encoding(_SIGNATURE_BYTES),
}


@dataclass(frozen=True, slots=True)
class OfflineResolution:
    """What a Code meant at `as_of`, from a pack. It may have been revoked since.

    It is no `Resolution`, which is a fresh answer of the service. After `valid_until` it says nothing.
    """

    xr_id: str
    intent: Intent
    as_of: datetime
    valid_until: datetime
    pack_id: str
    key_id: str


@dataclass(frozen=True, slots=True)
class OfflinePack:
    """A verified pack of the Codes of a campaign, or of the whole project if `campaign_id` is None.

    `digest` is that of its entry in the transparency log, and `proof` the log's proof of it, unverified.
    """

    pack_id: str
    project_id: str
    campaign_id: str | None
    issued_at: datetime
    valid_until: datetime
    codes_count: int
    key_id: str
    digest: str
    proof: bytes | None = field(repr=False)
    _codes: Mapping[str, Mapping[str, Any]] = field(repr=False)

    def find(self, token: str, now: datetime) -> OfflineResolution | None:
        """Return what the pack says of a broadcast token (`brd_…`) at `now`, which has a time zone.

        None if the pack does not name it, if the pack or the Code has ended, and if the pack was made more than two
        minutes after `now`: the clock is wrong. Ask only when the service cannot be reached, and see `find_in_packs`.

        Source: wire contract, section 12, "Offline pack".
        """
        if self.issued_at - now > CLOCK_SKEW_MAX or now >= self.valid_until:
            return None
        code = self._code_of(token)
        if code is None:
            return None
        expires_at = timestamps.parse(code["expires_at"])
        if now >= expires_at:
            return None
        return OfflineResolution(
            xr_id=code["xr_id"],
            intent=Intent(**copy.deepcopy(code["intent"])),  # Who changes an answer must not change the pack.
            as_of=self.issued_at,
            valid_until=min(self.valid_until, expires_at),
            pack_id=self.pack_id,
            key_id=self.key_id,
        )

    def is_logged(self, policy: LogPolicy) -> bool:
        """Return whether its proof proves that it is in a log."""
        if self.proof is None:
            return False
        try:
            verify_log_proof(self.proof, policy, _SEALED, self.digest)
        except Unverifiable:
            return False
        return True

    def leaves_out(self, token: str, other: "OfflinePack") -> bool:
        """Return whether this pack is newer than `other`, should name what it names, and does not name the token."""
        return self._is_newer_than(other) and self._code_of(token) is None

    def replaces(self, other: "OfflinePack", at: datetime) -> bool:
        """Return whether this pack makes `other` superfluous from `at` on.

        This one is newer, should name what `other` names, and lasts at least as long, unless `other` has ended. So it
        answers what `other` still could, and leaves out what `other` left out. It needs a proof if `other` has one.
        """
        lasts = other.valid_until <= max(at, self.valid_until)
        return self._is_newer_than(other) and lasts and (self.proof is not None or other.proof is None)

    def _is_newer_than(self, other: "OfflinePack") -> bool:
        covers = self.project_id == other.project_id and self.campaign_id in {None, other.campaign_id}
        return covers and self.issued_at > other.issued_at

    def _code_of(self, token: str) -> Mapping[str, Any] | None:
        return self._codes.get(digest_token(token)) if BROADCAST_TOKEN.fullmatch(token) else None


def find_in_packs(
    packs: Iterable[OfflinePack], token: str, now: datetime, *, require_logged: LogPolicy | None = None
) -> OfflineResolution | None:
    """Return what the newest of all known packs that answers says of a token; None if no pack may answer.

    A pack may not answer if a newer one of its project, of its campaign or of all, leaves the Code out: the Code was
    revoked, or has expired. Give it ended packs too, as long as they are known. If any pack was made more than two
    minutes after `now`, the clock was set back, and none answers. With `require_logged`, only packs with a `proof` do.

    Source: wire contract, section 12, "Offline pack"; details, points A24 and A26.
    """
    known = sorted(packs, key=lambda pack: pack.issued_at, reverse=True)
    if known and known[0].issued_at - now > CLOCK_SKEW_MAX:
        return None
    for pack in known:
        found = pack.find(token, now)
        if found is None or any(newer.leaves_out(token, pack) for newer in known):
            continue
        if require_logged is None or pack.is_logged(require_logged):
            return found
    return None


def verify_offline_pack(
    document: bytes | Mapping[str, Any], keys: KeySet, *, proof: bytes | None = None
) -> OfflinePack:
    """Verify an `svc-offline-pack-v1` document; return the pack, which may have ended.

    `document` is the text or its JSON object. `keys` are the service's, from `read_key_history`, kept from when there
    was a network. The checks have a fixed order, and the first that fails is named: JSON, shape, key, signature, times.
    `proof` is the answer of `GET /v1/log/proofs/{digest}` to the pack's `digest`, for receivers with `require_logged`.

    Raises: CertificateRejected.
    Source: wire contract, section 12, "Offline pack".
    """
    members = read_object(document, PACK_BYTES_MAX)
    check_shape(members, _PACK)
    codes = members["codes"]
    by_digest = {code["token_digest"]: code for code in codes}
    is_ordered = all(former["xr_id"] < later["xr_id"] for former, later in itertools.pairwise(codes))
    if not is_ordered or len(by_digest) != len(codes):
        raise CertificateRejected("wrong_shape", "codes")
    check_signature(members, keys)
    issued_at, valid_until = timestamps.parse(members["issued_at"]), timestamps.parse(members["valid_until"])
    # A sum could overflow for a distant date; the difference of two times cannot.
    if not timedelta(0) < valid_until - issued_at <= LIFE_MAX:
        raise CertificateRejected("wrong_times", "valid_until")
    return OfflinePack(
        pack_id=members["pack_id"],
        project_id=members["project_id"],
        campaign_id=members["campaign_id"],
        issued_at=issued_at,
        valid_until=valid_until,
        codes_count=len(codes),
        key_id=members["key_id"],
        digest=commit(_SEALED, members),
        proof=proof,
        _codes=by_digest,
    )
