"""Receive, resolve, verify and measure XR Codes broadcast as sound."""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any
from typing import Final

from soundmark_sdk import webhooks as webhooks
from soundmark_sdk.archive import ArchiveFailure as ArchiveFailure
from soundmark_sdk.archive import ArchiveRejected as ArchiveRejected
from soundmark_sdk.archive import VerifiedArchive as VerifiedArchive
from soundmark_sdk.archive import verify_archive as verify_archive
from soundmark_sdk.certificate import VerifiedCertificate as VerifiedCertificate
from soundmark_sdk.certificate import verify_certificate as verify_certificate
from soundmark_sdk.decode_certificate import VerifiedDecodeCertificate as VerifiedDecodeCertificate
from soundmark_sdk.decode_certificate import verify_decode_certificate as verify_decode_certificate
from soundmark_sdk.device_secret import DeviceSecret as DeviceSecret
from soundmark_sdk.device_secret import DeviceSecretUnusable as DeviceSecretUnusable
from soundmark_sdk.device_secret import open_device_secret as open_device_secret
from soundmark_sdk.failures import DeliveryFailure as DeliveryFailure
from soundmark_sdk.failures import DeliveryReason as DeliveryReason
from soundmark_sdk.failures import KeyUnknown as KeyUnknown
from soundmark_sdk.failures import Reason as Reason
from soundmark_sdk.failures import ReceiverFailure as ReceiverFailure
from soundmark_sdk.keys import KeySet as KeySet
from soundmark_sdk.keys import read_key_history as read_key_history
from soundmark_sdk.keys import read_key_set as read_key_set
from soundmark_sdk.keys import read_trusted_keys as read_trusted_keys
from soundmark_sdk.measuring import Consent as Consent
from soundmark_sdk.measuring import Measurement as Measurement
from soundmark_sdk.measuring import MeasurementRefused as MeasurementRefused
from soundmark_sdk.measuring import ReceiverClass as ReceiverClass
from soundmark_sdk.measuring import measure as measure
from soundmark_sdk.offline_pack import OfflinePack as OfflinePack
from soundmark_sdk.offline_pack import OfflineResolution as OfflineResolution
from soundmark_sdk.offline_pack import find_in_packs as find_in_packs
from soundmark_sdk.offline_pack import verify_offline_pack as verify_offline_pack
from soundmark_sdk.receiver import AsyncReceiver as AsyncReceiver
from soundmark_sdk.receiver import AsyncReporter as AsyncReporter
from soundmark_sdk.receiver import Receiver as Receiver
from soundmark_sdk.receiver import Reporter as Reporter
from soundmark_sdk.records import Intent as Intent
from soundmark_sdk.records import MeasurementProof as MeasurementProof
from soundmark_sdk.records import Policy as Policy
from soundmark_sdk.records import Resolution as Resolution
from soundmark_sdk.records import SignedCode as SignedCode
from soundmark_sdk.signed_documents import CertificateFailure as CertificateFailure
from soundmark_sdk.signed_documents import CertificateRejected as CertificateRejected
from soundmark_sdk.transparency import AuditLogRejected as AuditLogRejected
from soundmark_sdk.transparency import LogPolicy as LogPolicy
from soundmark_sdk.transparency import VerifiedAuditLog as VerifiedAuditLog
from soundmark_sdk.transparency import VerifiedProof as VerifiedProof
from soundmark_sdk.transparency import commit as commit
from soundmark_sdk.transparency import verify_audit_log as verify_audit_log
from soundmark_sdk.transparency import verify_log_proof as verify_log_proof
from soundmark_sdk.verification import verify_answer as verify_answer
from soundmark_sdk.verification import verify_signed_code as verify_signed_code

if _TYPE_CHECKING:
    from soundmark_sdk.examining import Examination as Examination
    from soundmark_sdk.examining import examine as examine
    from soundmark_sdk.findings import Finding as Finding
    from soundmark_sdk.findings import FindingCode as FindingCode
    from soundmark_sdk.hearing import Frame as Frame
    from soundmark_sdk.hearing import Listener as Listener
    from soundmark_sdk.hearing import hear_samples as hear_samples
    from soundmark_sdk.levels import Levels as Levels
    from soundmark_sdk.markers import Markers as Markers
    from soundmark_sdk.microphone import Microphone as Microphone
    from soundmark_sdk.microphone import MicrophoneUnavailable as MicrophoneUnavailable
    from soundmark_sdk.microphone import listen as listen
    from soundmark_sdk.recording import hear as hear

__version__: Final = _version("soundmark-sdk")

# What hears loads NumPy, which takes longer than everything else here. Who only verifies, or calls the API, does not.
_MODULES_THAT_HEAR: Final = {
    "Examination": "examining",
    "Finding": "findings",
    "FindingCode": "findings",
    "examine": "examining",
    "Frame": "hearing",
    "Listener": "hearing",
    "hear_samples": "hearing",
    "Levels": "levels",
    "Markers": "markers",
    "Microphone": "microphone",
    "MicrophoneUnavailable": "microphone",
    "listen": "microphone",
    "hear": "recording",
}


def __getattr__(name: str) -> _Any:
    if name not in _MODULES_THAT_HEAR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(f"soundmark_sdk.{_MODULES_THAT_HEAR[name]}"), name)
    globals()[name] = value
    return value
