"""`soundmark certificate`: verify the proof of a deletion."""

from pathlib import Path
from typing import Annotated, Any

import typer
from soundmark_sdk import CertificateRejected, VerifiedCertificate, verify_certificate
from soundmark_sdk.certificate import CERTIFICATE_BYTES_MAX

from soundmark.cli import Refused
from soundmark.cli.api import make_label, show_facts, show_json
from soundmark.cli.options import AsJson, BaseUrl, Connection
from soundmark.cli.service import find_service
from soundmark.cli.verification_keys import KeysFile, check_key_options, fetch_keys, read_bounded, read_keys
from soundmark.kit.text.timestamps import format_timestamp

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def certificate() -> None:
    """Verify the certificate of a deletion."""


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The certificate.")],
    *,
    keys: KeysFile = None,
    base_url: BaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Verify a deletion certificate: its signature, and that nothing was left.

    Exit status 0 if the service signed exactly this certificate. Exit status 1 if not; the error message names the
    first fault and its place. A certificate contains no keys: without --keys, they come from the service, which
    requires no credential.
    """
    check_key_options(keys, base_url)
    text = read_bounded(file, CERTIFICATE_BYTES_MAX)
    if keys is not None:
        trusted, source = read_keys(keys), f"the keys in {keys}"
    else:
        address = find_service(Connection(base_url)).base_url
        trusted, source = fetch_keys(address), f"the keys of {address}"
    try:
        verified = verify_certificate(text, trusted)
    except CertificateRejected as rejected:
        raise Refused(f"{file} is not genuine: {rejected}") from None
    if as_json:
        show_json(_describe(verified, source))
    else:
        show_facts(_list_facts(verified, source))


def _list_facts(verified: VerifiedCertificate, source: str) -> list[tuple[str, Any]]:
    deleted = {**verified.deleted_in_core, **verified.deleted_in_audience}
    return [
        ("Certificate", verified.certificate_id),
        ("Deleted", f"{verified.subject_type.replace('z', 's')} {verified.subject_id}"),
        ("Organisation", verified.organization_id),
        ("Requested", verified.requested_at),
        ("Completed", verified.completed_at),
        *((make_label(name), count) for name, count in deleted.items()),
        ("Remaining", 0),
        ("Signed by", verified.key_id),
        ("Verified with", source),
    ]


def _describe(verified: VerifiedCertificate, source: str) -> dict[str, Any]:
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
        "verified_with": source,
    }
