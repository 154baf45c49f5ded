"""The JSON Schemas (2020-12) of data that programs exchange."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from soundmark.core.views.archives import ORGANIZATION_FORMAT, PROJECT_FORMAT, OrganizationArchive, ProjectArchive
from soundmark.wire.audience_event import AudienceEvent
from soundmark.wire.decode_certificate import DecodeCertificate
from soundmark.wire.deletion_certificate import DeletionCertificate
from soundmark.wire.log_entry import LogEntryDocument
from soundmark.wire.offline_pack import PACK_FORMAT, OfflinePack
from soundmark.wire.resolution import Resolution
from soundmark.wire.xr_code import CodeDetail, CodeIssued, SignedCode

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_SHAPES: Final[Mapping[str, type[BaseModel]]] = {
    "xr-code-v1": SignedCode,
    "xr-code-issued-v1": CodeIssued,
    "xr-code-detail-v1": CodeDetail,
    "xr-resolution-v1": Resolution,
    "audience-event-v1": AudienceEvent,
    "deletion-certificate-v1": DeletionCertificate,
    "log-entry-v1": LogEntryDocument,
    "decode-certificate-v1": DecodeCertificate,
    PACK_FORMAT: OfflinePack,
    PROJECT_FORMAT: ProjectArchive,
    ORGANIZATION_FORMAT: OrganizationArchive,
}


def build_schemas(base_url: str) -> dict[str, dict[str, Any]]:
    """Return each published schema by name, with its URL below `base_url` as `$id`.

    Source: API v1, "Versioning" 2.
    """
    return {
        name: {"$schema": DIALECT, "$id": f"{base_url}/schemas/{name}.json", **shape.model_json_schema()}
        for name, shape in _SHAPES.items()
    }
