"""`soundmark certificate`: verify what the service signed for outsiders."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer
from soundmark_sdk import (
    CertificateRejected,
    KeySet,
    OfflinePack,
    VerifiedCertificate,
    VerifiedDecodeCertificate,
    verify_certificate,
    verify_decode_certificate,
    verify_offline_pack,
)
from soundmark_sdk.decode_certificate import MeasuredRepetition
from soundmark_sdk.offline_pack import PACK_BYTES_MAX, PACK_FORMAT

from soundmark.cli import Refused
from soundmark.cli.api import make_label, show_facts, show_json
from soundmark.cli.intents import printable
from soundmark.cli.options import AsJson, BaseUrl, Connection, UpDir
from soundmark.cli.service import find_service
from soundmark.cli.verification_keys import KeysFile, check_key_options, fetch_keys, read_bounded, read_keys
from soundmark.kit.text.timestamps import format_timestamp

Verified: TypeAlias = VerifiedCertificate | VerifiedDecodeCertificate | OfflinePack

app = typer.Typer(add_completion=False, no_args_is_help=True)
# An offline pack is the longest of all.
_BYTES_MAX: Final = PACK_BYTES_MAX


@app.callback()
def certificate() -> None:
    """Verify the certificate of a deletion, or of what was measured of a Code, or an offline pack."""


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The certificate.")],
    *,
    keys: KeysFile = None,
    base_url: BaseUrl = None,
    data_dir: UpDir = None,
    as_json: AsJson = False,
) -> None:
    """Verify a deletion certificate, a decode certificate or an offline pack: its signature, and what it states.

    Exit status 0 if the service signed exactly this certificate. Exit status 1 if not; the error message names the
    first fault and its place. A certificate contains no keys: without --keys, they come from the service, which
    requires no credential.
    """
    check_key_options(keys, base_url, data_dir)
    text = read_bounded(file, _BYTES_MAX)
    if keys is not None:
        trusted, source = read_keys(keys), f"the keys in {keys}"
    else:
        address = find_service(Connection(base_url, data_dir=data_dir)).base_url
        trusted, source = fetch_keys(address), f"the keys of {address}"
    try:
        verified = _verify(text, trusted)
    except CertificateRejected as rejected:
        raise Refused(f"{file} is not genuine: {rejected}") from None
    if as_json:
        show_json({**_describe(verified), "verified_with": source})
    else:
        show_facts([*_list_facts(verified), ("Signed by", verified.key_id), ("Verified with", source)])


def _verify(text: bytes, trusted: KeySet) -> Verified:
    """Verify a document of the kind that its members say it is; without any, it is judged as that of a deletion.

    Raises: CertificateRejected.
    """
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        members = None
    if isinstance(members, dict) and "measured" in members:
        return verify_decode_certificate(text, trusted)
    if isinstance(members, dict) and members.get("format") == PACK_FORMAT:
        return verify_offline_pack(text, trusted)
    return verify_certificate(text, trusted)


def _list_facts(verified: Verified) -> list[tuple[str, Any]]:
    if isinstance(verified, VerifiedDecodeCertificate):
        return _list_facts_of_decoding(verified)
    if isinstance(verified, OfflinePack):
        return [(make_label(name), value) for name, value in _list_members(verified)]
    deleted = {**verified.deleted_in_core, **verified.deleted_in_audience}
    return [
        ("Certificate", verified.certificate_id),
        ("Deleted", f"{verified.subject_type.replace('z', 's')} {verified.subject_id}"),
        ("Organisation", verified.organization_id),
        ("Requested", verified.requested_at),
        ("Completed", verified.completed_at),
        *((make_label(name), count) for name, count in deleted.items()),
        ("Remaining", 0),
    ]


def _list_facts_of_decoding(verified: VerifiedDecodeCertificate) -> list[tuple[str, Any]]:
    """Return the facts, with the weakest repetition alone. The measured values are text from outside."""
    weakest = min(verified.repetitions, key=lambda each: each.margin_db)
    return [
        ("Certificate", verified.certificate_id),
        ("Code", verified.xr_id),
        ("Organisation", verified.organization_id),
        ("Issued", verified.issued_at),
        ("File", printable(verified.file_name)),
        ("SHA-256", verified.file_sha256),
        ("Measured by", printable(f"{verified.tool_name} {verified.tool_version}")),
        ("Repetitions", len(verified.repetitions)),
        ("Weakest", _describe_repetition(weakest)),
        *((printable(f"{each.name} {each.setting}"), f"{each.heard} of {each.of} heard") for each in verified.codecs),
    ]


def _list_members(pack: OfflinePack) -> list[tuple[str, Any]]:
    """Return the members of a pack, with the number of its Codes instead of the Codes."""
    names = ("pack_id", "project_id", "campaign_id", "issued_at", "valid_until")
    return [*((name, getattr(pack, name)) for name in names), ("codes", pack.codes_count)]


def _describe_repetition(repetition: MeasuredRepetition) -> str:
    return f"at {repetition.at_ms / 1000:.1f} s, margin {repetition.margin_db:.1f} dB"


def _describe(verified: Verified) -> dict[str, Any]:
    if isinstance(verified, VerifiedDecodeCertificate):
        return {**asdict(verified), "issued_at": format_timestamp(verified.issued_at)}
    if isinstance(verified, OfflinePack):
        times = {name: format_timestamp(getattr(verified, name)) for name in ("issued_at", "valid_until")}
        return {**dict(_list_members(verified)), **times, "key_id": verified.key_id}
    return {
        "certificate_id": verified.certificate_id,
        "subject": {
            "type": verified.subject_type,
            "id": verified.subject_id,
            "organization_id": verified.organization_id,
        },
        "requested_at": format_timestamp(verified.requested_at),
        "completed_at": format_timestamp(verified.completed_at),
        "deleted": {"core": dict(verified.deleted_in_core), "audience": dict(verified.deleted_in_audience)},
        "key_id": verified.key_id,
    }
