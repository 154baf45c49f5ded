"""The request and response shapes of webhook endpoints, their deliveries and their events."""

from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict, FailFast, Field, StringConstraints, model_validator

from soundmark.core.domain.tenancy.scope import ActorType
from soundmark.core.domain.webhooks.delivery import DeliveryStatus
from soundmark.core.domain.webhooks.endpoint import URL_MAX, DisabledReason, Endpoint
from soundmark.core.domain.webhooks.event import EVENT_TYPES
from soundmark.core.edge.ids import ResourceId
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.ids import parse_id
from soundmark.wire.shape import NO_CONTROL_CHARS, Timestamp, Wire

DESCRIPTION_MAX: Final = 200
REPLAYED_MAX: Final = 100  # Contract, section 9.
_EXAMPLE_URL: Final = "https://consumer.example.org/webhooks"
_TYPE_CHARS_MAX: Final = 64


def _require_known(event_type: str) -> str:
    if event_type not in EVENT_TYPES:
        raise ValueError("must be a known event type")
    return event_type


def _require_types_once(types: list[str] | None) -> list[str] | None:
    if types is not None and len(set(types)) < len(types):
        raise ValueError("must not name a type twice")
    return types


def _require_events_once(event_ids: list[str]) -> list[str]:
    if len(set(event_ids)) < len(event_ids):
        raise ValueError("must not name an event twice")
    return event_ids


EventType = Annotated[
    str,
    StringConstraints(max_length=_TYPE_CHARS_MAX),
    Field(json_schema_extra={"enum": sorted(EVENT_TYPES)}),
    AfterValidator(_require_known),
]
EventTypes = Annotated[
    list[EventType] | None,
    Field(
        min_length=1,
        max_length=len(EVENT_TYPES),
        description="The types of events to send; null: all.",
        json_schema_extra={"uniqueItems": True},
    ),
    FailFast(),
    AfterValidator(_require_types_once),
]
Url = Annotated[
    str,
    StringConstraints(min_length=1, max_length=URL_MAX),
    Field(description="Where to send events: an https URL with a public host, without credentials or a fragment."),
]
Description = Annotated[
    str | None,
    StringConstraints(max_length=DESCRIPTION_MAX, pattern=NO_CONTROL_CHARS),
    Field(description="A note for the organisation's members."),
]


class CreateWebhookEndpoint(Wire):
    """A new webhook endpoint of an organisation, or of one of its projects."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "organization_id": "org_b2xkLXJhZGlvLWV4YW1wbA",
                    "project_id": None,
                    "url": _EXAMPLE_URL,
                    "event_types": ["code.issued", "code.revoked"],
                    "description": "The playout system",
                }
            ]
        }
    )

    organization_id: str
    project_id: Annotated[
        ResourceId | None,
        Field(description="Only events of this project; null: of all projects and of the organisation itself."),
    ] = None
    url: Url
    event_types: EventTypes = None
    description: Description = None


class UpdateWebhookEndpoint(Wire):
    """The members to change, at least one. Absent members keep their values."""

    model_config = ConfigDict(
        json_schema_extra={"minProperties": 1, "examples": [{"event_types": None, "enabled": True}]}
    )

    # These two cannot be cleared, so null is not allowed; the factories only make them optional and are never read.
    url: Annotated[Url, Field(default_factory=str)]
    event_types: EventTypes = None
    description: Description = None
    enabled: Annotated[
        bool,
        Field(
            default_factory=bool,
            description="true also clears the failures for which the service disabled the endpoint.",
        ),
    ]

    @model_validator(mode="after")
    def _require_a_change(self) -> "UpdateWebhookEndpoint":
        if not self.model_fields_set:
            raise ValueError("must name at least one of url, event_types, description and enabled")
        return self


EventIds = Annotated[
    list[Annotated[str, StringConstraints(max_length=160)]],
    Field(min_length=1, max_length=REPLAYED_MAX, json_schema_extra={"uniqueItems": True}),
    FailFast(),
    AfterValidator(_require_events_once),
    AfterValidator(lambda event_ids: [parse_id(event_id) for event_id in event_ids]),
]


class ReplayWebhookEvents(Wire):
    """The events to send again: those from `from` (inclusive) to `to` (exclusive), or those with these ids."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["from", "to"], "maxProperties": 2},
                {"required": ["event_ids"], "maxProperties": 1},
            ],
            "examples": [{"from": "2026-11-20T00:00:00.000Z", "to": "2026-11-21T00:00:00.000Z"}],
        }
    )

    # None of them may be null; the factories only make them optional and are never read.
    from_at: Annotated[Timestamp, Field(alias="from", default_factory=lambda: None)]
    to_at: Annotated[Timestamp, Field(alias="to", default_factory=lambda: None)]
    event_ids: Annotated[EventIds, Field(default_factory=list)]

    @model_validator(mode="after")
    def _require_a_choice(self) -> "ReplayWebhookEvents":
        if self.model_fields_set not in ({"from_at", "to_at"}, {"event_ids"}):
            raise ValueError("must have either from and to, or event_ids")
        return self


class WebhookEndpointView(Wire):
    """A webhook endpoint without its secret, which cannot be read again.

    `disabled_reason` says why the service disabled the endpoint: `gone` after a 410 response, `failing` after five days
    of failures. It is null if the endpoint is enabled or was disabled by a person.
    """

    id: str
    organization_id: str
    project_id: str | None
    url: str
    event_types: list[str] | None
    description: str | None
    enabled: bool
    disabled_reason: DisabledReason | None
    created_at: Timestamp


class WebhookEndpointWithSecret(WebhookEndpointView):
    """A webhook endpoint with a new secret, which is returned only once."""

    secret: Annotated[str, Field(repr=False, pattern=r"^whsec_[A-Za-z0-9+/]{43}=$")]


class WebhookEndpointPage(Wire):
    """Webhook endpoints, newest first."""

    data: list[WebhookEndpointView]
    next_cursor: str | None


class WebhookDeliveryView(Wire):
    """The delivery of an event. `next_attempt_at` is null once it is delivered or failed."""

    id: str
    event_id: str
    event_type: str
    status: DeliveryStatus
    attempts: int
    last_status_code: int | None
    last_error: str | None
    next_attempt_at: Timestamp | None
    created_at: Timestamp


class WebhookDeliveryPage(Wire):
    """Deliveries to an endpoint, newest first."""

    data: list[WebhookDeliveryView]
    next_cursor: str | None


class MessageActor(Wire):
    """Who acted."""

    type: ActorType
    id: str


class MessageData(Wire):
    """The data of the event. Its other members are the metadata of the audit entry, or the facts of the event."""

    model_config = ConfigDict(extra="allow")

    organization_id: str
    project_id: str | None
    actor: MessageActor


class WebhookMessage(Wire):
    """The body of an event's message, byte for byte as it is sent."""

    type: str
    timestamp: Timestamp
    data: MessageData


class ReplayedView(Wire):
    """The number of deliveries created: one for each matching event without a pending delivery to the endpoint."""

    replayed_count: int


def endpoint_view(endpoint: Endpoint) -> WebhookEndpointView:
    """Return the view of an endpoint."""
    event_types = None if endpoint.event_types is None else list(endpoint.event_types)
    return WebhookEndpointView.from_record(endpoint, event_types=event_types)


def endpoint_with_secret(endpoint: Endpoint, secret: Secret) -> WebhookEndpointWithSecret:
    """Return the view of an endpoint that just received a secret."""
    return WebhookEndpointWithSecret(**dict(endpoint_view(endpoint)), secret=secret.reveal())
