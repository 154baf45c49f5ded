"""The routes of decode certificates."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import ClientDigest, Ctx, Tenant, XrIdPath
from soundmark.core.features.codes.decode_certificates import example, service
from soundmark.core.problems import CodeNotFound, DecodeCertificateNotFound, ResourceDeletionInProgress
from soundmark.kit.http.requests.bodies import MEASURED_BODY
from soundmark.kit.http.responses.problems import RateLimited
from soundmark.wire.decode_certificate import DecodeCertificate, Measurement

operations = Operations("Codes")

CertificateIdPath = Annotated[
    ResourceId, Path(description="The certificate's id.", examples=["dcc_ZGVjb2RlZC13ZWxsLWV4YW"])
]


@operations.add(
    "POST",
    "/v1/codes/{xr_id}/decode-certificates",
    Operation(
        "decode_certificate.issue",
        body_limits=MEASURED_BODY,
        problems=(CodeNotFound, ResourceDeletionInProgress, RateLimited),
    ),
    status=HTTPStatus.CREATED,
    response_model=DecodeCertificate,
    example=example.CERTIFICATE,
)
async def issue_decode_certificate(ctx: Ctx, scope: Tenant, xr_id: XrIdPath, body: Measurement) -> Response:
    """Sign what was measured of a Code in a finished programme. The Code can be in any state.

    The certificate says that somebody of this organisation measured this, and when. Core does not measure again.
    Everybody who has its id can read it, until its project or organisation is deleted. At most 600 an hour for an
    organisation.
    """
    document = await service.issue_certificate(ctx, scope, xr_id, body)
    return Response(document, HTTPStatus.CREATED, media_type="application/json")


@operations.add(
    "GET",
    "/v1/decode-certificates/{certificate_id}",
    Operation(None, problems=(DecodeCertificateNotFound, RateLimited), note="the id is the key"),
    response_model=DecodeCertificate,
    example=example.CERTIFICATE,
)
async def get_decode_certificate(ctx: Ctx, client: ClientDigest, certificate_id: CertificateIdPath) -> Response:
    """Return a signed decode certificate. Limited for each client IP address, as resolutions are."""
    headers = await ctx.certificate_limit.count(client)
    document = await service.find_certificate(ctx, certificate_id)
    if document is None:
        raise DecodeCertificateNotFound(headers=headers)
    return Response(document, media_type="application/json", headers=headers)
