"""The reasons for which an archive is rejected."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

ArchiveFailure: TypeAlias = Literal[
    "seal_missing",
    "seal_malformed",
    "keys_malformed",
    "key_unknown",
    "signature_invalid",
    "digest_mismatch",
    "malformed",
    "wrong_shape",
    "wrong_subject",
    "foreign_record",
    "out_of_order",
    "altered_code",
    "wrong_count",
    "wrong_keys",
]

_EXPLANATIONS: Final[Mapping[ArchiveFailure, str]] = {
    "seal_missing": "The file does not end with a seal, so it is incomplete or is not an archive.",
    "seal_malformed": "The seal does not have the shape of a seal.",
    "keys_malformed": "The verification keys in the file cannot be read.",
    "key_unknown": "The signing key is not among the keys that it is verified with.",
    "signature_invalid": "The signature is wrong.",
    "digest_mismatch": "The file is not the one that was sealed: something in it was changed.",
    "malformed": "The text is not I-JSON with one record on a line.",
    "wrong_shape": "A member is missing, unknown, in the wrong place or of the wrong type.",
    "wrong_subject": "The seal is about something else.",
    "foreign_record": "The record belongs to another organisation or project.",
    "out_of_order": "The record is not newer than the one before it.",
    "altered_code": "The Code differs from what was signed.",
    "wrong_count": "The list has another number of records.",
    "wrong_keys": "The keys in the file are not exactly those that signed the archive and its Codes.",
}
assert tuple(_EXPLANATIONS) == get_args(ArchiveFailure), "each failure has its sentence"


class ArchiveRejected(Exception):
    """The first fault in an archive, and its location, such as `codes[17].issuer`.

    `explanation` is an English sentence of this package. Nothing here holds text from the file.
    """

    def __init__(self, failure: ArchiveFailure, location: str) -> None:
        explanation = _EXPLANATIONS[failure]
        super().__init__(f"{failure} at {location}: {explanation}")
        self.failure: Final[ArchiveFailure] = failure
        self.location: Final = location
        self.explanation: Final = explanation
