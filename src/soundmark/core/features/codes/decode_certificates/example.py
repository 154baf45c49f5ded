"""An example of a decode certificate. It verifies under the example key."""

from typing import Final

from soundmark.core.edge.examples import CODE, EXAMPLE_KEY, LATER
from soundmark.core.features.codes.decode_certificates.certificate import canonicalize_measurement, write_certificate
from soundmark.wire.decode_certificate import EXAMPLE_MEASUREMENT, DecodeCertificate

CERTIFICATE: Final = DecodeCertificate.model_validate_json(
    write_certificate(
        EXAMPLE_KEY,
        "dcc_ZGVjb2RlZC13ZWxsLWV4YW",
        organization_id=CODE.organization_id,
        xr_id=CODE.xr_id,
        issued_at=LATER,
        measured=canonicalize_measurement(EXAMPLE_MEASUREMENT),
    )
)
