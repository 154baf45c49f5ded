"""The request and response shapes of API keys."""

from datetime import datetime
from typing import Annotated, Final, get_args

from pydantic import AfterValidator, ConfigDict, FailFast, Field

from soundmark.core.domain.tenancy.api_key import ApiKey
from soundmark.core.domain.tenancy.scope import KeyScope
from soundmark.core.edge.ids import ResourceId
from soundmark.core.views.tenancy import ApiKeyView, api_key_view
from soundmark.kit.crypto.secret import Secret
from soundmark.wire.shape import Name, Wire

# API v1, "Limits".
LIFETIME_DAYS_DEFAULT: Final = 90
LIFETIME_DAYS_MAX: Final = 365


def _refuse_repetition(scopes: list[KeyScope]) -> list[KeyScope]:
    if len(set(scopes)) < len(scopes):
        raise ValueError("must not name a scope twice")
    return scopes


Scopes = Annotated[
    list[KeyScope],
    Field(min_length=1, max_length=len(get_args(KeyScope)), json_schema_extra={"uniqueItems": True}),
    FailFast(),
    AfterValidator(_refuse_repetition),
]


class CreateApiKey(Wire):
    """A new API key for one project."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "organization_id": "org_b2xkLXJhZGlvLWV4YW1wbA",
                    "project_id": "prj_bW9ybmluZy1zaG93LWV4YW",
                    "name": "Playout server",
                    "scopes": ["codes:read", "codes:write"],
                    "expires_in_days": 30,
                }
            ]
        }
    )

    organization_id: str
    project_id: ResourceId
    name: Name | None = None
    scopes: Scopes
    expires_in_days: Annotated[int, Field(ge=1, le=LIFETIME_DAYS_MAX)] = LIFETIME_DAYS_DEFAULT


class RenameApiKey(Wire):
    """A new name for an API key; null removes the name."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Playout server"}]})

    name: Name | None


class ApiKeyWithSecret(ApiKeyView):
    """An API key with its secret, which is returned only once."""

    secret: str


class ApiKeyPage(Wire):
    """API keys, newest first."""

    data: list[ApiKeyView]
    next_cursor: str | None


def api_key_with_secret(key: ApiKey, secret: Secret, now: datetime) -> ApiKeyWithSecret:
    """Return the view of a key that just received a secret."""
    return ApiKeyWithSecret(**dict(api_key_view(key, now)), secret=secret.reveal())
