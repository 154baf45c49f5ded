"""The calls with which Core controls integrations.

Each change is an operation with an id: it is carried out once, and a repetition gets the same response.
"""

from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints, model_validator

from soundmark.kit.http.requests.private_endpoint import PrivateEndpoint
from soundmark.kit.http.responses.problems import NotFound
from soundmark.kit.text.paging import LIMIT_MAX
from soundmark.wire.audience_limits import RETENTION_DAYS_MAX
from soundmark.wire.private.parts import CoreKey, Count, ProjectQuery, TenantId
from soundmark.wire.private.problems import EntitlementRequired, IntegrationNotFound, IntegrationRevoked
from soundmark.wire.shape import AudienceMode, EntitledMode, IntegrationId, KeyId, Timestamp, Wire

OperationAction = Literal["create", "revoke", "rotate_secret", "change_retention", "replace_core_key"]

STEP_MAX: Final = 1000  # Integrations in one step through many: some milliseconds, also where each is locked.

RetentionDays = Annotated[int, Field(ge=1, le=RETENTION_DAYS_MAX)]


class EntitlementTerms(Wire):
    """The terms of an entitlement in one mode; null `ends_at` means no end. The larger `revision` is the later."""

    monthly_event_quota: Count
    ends_at: Timestamp | None
    revision: Count


class EntitlementResponse(EntitlementTerms):
    """The entitlement that Audience keeps: the largest revision that it has received."""

    organization_id: str
    mode: EntitledMode


class SuspensionState(Wire):
    """Whether the platform has suspended an organisation. The larger `revision` is the later."""

    is_suspended: bool
    revision: Count


class SuspensionResponse(SuspensionState):
    """What Audience keeps: the largest revision that it has received."""

    organization_id: str


class CreateIntegrationRequest(Wire):
    """A new integration in a project, with the id that Core chose. A demo has no entitlement."""

    integration_id: IntegrationId
    organization_id: TenantId
    project_id: TenantId
    mode: AudienceMode
    retention_days: RetentionDays
    core_key: CoreKey
    entitlement: EntitlementTerms | None

    @model_validator(mode="after")
    def _refuse_entitled_demo(self) -> "CreateIntegrationRequest":
        if self.mode == "demo" and self.entitlement is not None:
            raise ValueError("a demo has no entitlement")
        return self


class ChangeRetentionRequest(Wire):
    """How many days an integration keeps its data from now on."""

    retention_days: RetentionDays


class IntegrationsQuery(ProjectQuery):
    """A page of a project's integrations, newest first, behind `before_at` and `before_id` if they are given.

    `limit` is one more than Core shows on a page, which tells Core whether there is another page.
    """

    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX + 1, strict=False)]
    before_at: Timestamp | None = None
    before_id: Annotated[str, StringConstraints(max_length=160)] | None = None


class InventoryQuery(Wire):
    """A step through an organisation's integrations, or one project's, oldest first, behind `after_at` and `after_id`.

    Before the oldest are the earliest time that there is and the empty id.
    """

    project_id: TenantId | None = None
    limit: Annotated[int, Field(ge=1, le=STEP_MAX, strict=False)]
    after_at: Timestamp
    after_id: Annotated[str, StringConstraints(max_length=160)]


class IntegrationResponse(Wire):
    """An integration, without its secret. `core_key_id` names the key that it trusts now."""

    id: IntegrationId
    organization_id: TenantId
    project_id: TenantId
    mode: AudienceMode
    retention_days: int
    status: Literal["active", "revoked"]
    core_key_id: KeyId
    created_at: Timestamp
    secret_rotated_at: Timestamp | None
    revoked_at: Timestamp | None


class IntegrationSecretResponse(Wire):
    """An integration with its new HMAC secret. The secret is null if the operation is repeated: it is revealed once."""

    integration: IntegrationResponse
    hmac_secret: Annotated[str | None, Field(repr=False)]


class IntegrationsResponse(Wire):
    """Integrations, in the order that was requested."""

    data: list[IntegrationResponse]


class RetentionResponse(Wire):
    """The result of a change of retention, with exact counts of deleted rows. An integrity day is a row of counters."""

    integration_id: IntegrationId
    previous_retention_days: int
    retention_days: int
    deleted_events: int
    deleted_integrity_days: int


class CoreKeyResponse(Wire):
    """The key that an integration trusts now."""

    integration_id: IntegrationId
    core_key_id: KeyId


class TrustEverywhereRequest(CoreKey):
    """A key that the next `limit` integrations after `after` must trust.

    `still_signs` names the key that signs until every integration has this one; null if there is none.
    """

    after: Annotated[str, StringConstraints(pattern=r"^int_[A-Za-z0-9_-]{8,128}$")] | None
    limit: Annotated[int, Field(ge=1, le=STEP_MAX)]
    still_signs: KeyId | None


class TrustEverywhereResponse(Wire):
    """The integrations that trust the key now, and the last of them; `next` is null after the last integration."""

    data: list[IntegrationId]
    next: IntegrationId | None


class OperationResponse(Wire):
    """An operation that was carried out. `answer` is its response, without any secret."""

    id: str
    organization_id: str
    project_id: str
    integration_id: IntegrationId
    action: OperationAction
    answer: dict[str, Any]


_PATH: Final = "/v1/integrations/{integration_id}"
CREATE_INTEGRATION: Final = PrivateEndpoint(
    "POST", "/v1/integrations", IntegrationSecretResponse, (HTTPStatus.CREATED,), (EntitlementRequired,)
)
LIST_INTEGRATIONS: Final = PrivateEndpoint("GET", "/v1/integrations", IntegrationsResponse)
LIST_INVENTORY: Final = PrivateEndpoint("GET", "/v1/organizations/{organization_id}/integrations", IntegrationsResponse)
READ_INTEGRATION: Final = PrivateEndpoint("GET", _PATH, IntegrationResponse, problems=(IntegrationNotFound,))
REVOKE_INTEGRATION: Final = PrivateEndpoint(
    "POST", f"{_PATH}/revoke", IntegrationResponse, problems=(IntegrationNotFound,)
)
ROTATE_SECRET: Final = PrivateEndpoint(
    "POST", f"{_PATH}/secret", IntegrationSecretResponse, problems=(IntegrationNotFound, IntegrationRevoked)
)
CHANGE_RETENTION: Final = PrivateEndpoint(
    "PATCH", f"{_PATH}/retention", RetentionResponse, problems=(IntegrationNotFound, IntegrationRevoked)
)
REPLACE_CORE_KEY: Final = PrivateEndpoint(
    "POST", f"{_PATH}/core-key", CoreKeyResponse, problems=(IntegrationNotFound, IntegrationRevoked)
)
TRUST_EVERYWHERE: Final = PrivateEndpoint("POST", "/v1/core-keys", TrustEverywhereResponse)
PUT_ENTITLEMENT: Final = PrivateEndpoint("PUT", "/v1/entitlements/{organization_id}/{mode}", EntitlementResponse)
PUT_SUSPENSION: Final = PrivateEndpoint("PUT", "/v1/suspensions/{organization_id}", SuspensionResponse)
READ_OPERATION: Final = PrivateEndpoint("GET", "/v1/operations/{operation_id}", OperationResponse, problems=(NotFound,))
