"""What the verification of every signed document has in common: JSON, shape, key and signature, in this order."""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

from soundmark_sdk import strict_json
from soundmark_sdk.closed_shapes import Shape, find_misfit
from soundmark_sdk.failures import KeyUnknown, Unverifiable
from soundmark_sdk.keys import KeySet
from soundmark_sdk.strict_json import JsonValue
from soundmark_sdk.verification import canonicalize_signed

CertificateFailure: TypeAlias = Literal[
    "malformed",
    "wrong_shape",
    "key_unknown",
    "signature_invalid",
    "wrong_subject",
    "wrong_times",
    "incomplete",
]

_EXPLANATIONS: Final[Mapping[CertificateFailure, str]] = {
    "malformed": "The text is not I-JSON, or it is too long.",
    "wrong_shape": "A member is missing, unknown or of the wrong type.",
    "key_unknown": "The signing key is not among the keys that it is verified with.",
    "signature_invalid": "The signature is wrong: something in the certificate was changed.",
    "wrong_subject": "The organisation of the subject is another one.",
    "wrong_times": "It ends before it begins, or later than it may.",
    "incomplete": "Something was left.",
}
assert tuple(_EXPLANATIONS) == get_args(CertificateFailure), "each failure has its sentence"


class CertificateRejected(Exception):
    """The first fault in a certificate, and its location, such as `remaining.core.codes`.

    `explanation` is an English sentence of this package. Nothing here holds text from the certificate.
    """

    def __init__(self, failure: CertificateFailure, location: str) -> None:
        explanation = _EXPLANATIONS[failure]
        super().__init__(f"{failure} at {location}: {explanation}")
        self.failure: Final[CertificateFailure] = failure
        self.location: Final = location
        self.explanation: Final = explanation


def read_object(document: bytes | Mapping[str, Any], bytes_max: int) -> dict[str, Any]:
    """Return the JSON object that a document is; later changes of `document` do not reach it.

    Raises: CertificateRejected.
    """
    value: JsonValue
    try:
        if isinstance(document, bytes):
            if len(document) > bytes_max:
                raise CertificateRejected("malformed", "certificate")
            value = strict_json.parse(document)
        else:
            value = dict(document)
            strict_json.check_value(value)
            value = json.loads(json.dumps(value))
    except Unverifiable:
        raise CertificateRejected("malformed", "certificate") from None
    if not isinstance(value, dict):
        raise CertificateRejected("wrong_shape", "certificate")
    return value


def check_shape(members: dict[str, Any], shape: Shape) -> None:
    """Accept only an object of this shape.

    Raises: CertificateRejected.
    """
    misfit = find_misfit(members, shape, "")
    if misfit is not None:
        raise CertificateRejected("wrong_shape", misfit or "certificate")


def check_signature(members: Mapping[str, Any], keys: KeySet) -> None:
    """Accept only an object, of the right shape, that the key it names has signed.

    Raises: CertificateRejected.
    """
    try:
        keys.verify(members["key_id"], canonicalize_signed(members), members["signature"])
    except KeyUnknown:
        raise CertificateRejected("key_unknown", "key_id") from None
    except Unverifiable:
        raise CertificateRejected("signature_invalid", "signature") from None
