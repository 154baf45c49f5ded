"""The routes of platform settings."""

from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path

from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import CallingUser, Ctx
from soundmark.core.edge.refusals import invalid
from soundmark.core.features.platform.settings import example, service
from soundmark.core.features.platform.settings.wire import (
    PlatformSettingsView,
    PutConfiguration,
    PutSecret,
    SecretView,
    SettingView,
    secret_view,
    setting_view,
    settings_view,
)
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import NotFound
from soundmark.settings.registry import CONFIGURATION, CREDENTIALS, PlatformSetting, Value
from soundmark.wire.shape import Wire

operations = Operations("Platform")

V = TypeVar("V", bound=Value | Secret)

NameInPath = Annotated[str, Path(max_length=160, description="The setting's name.", examples=["smtp_host"])]


async def _find_credential(name: NameInPath) -> PlatformSetting[Secret]:
    if name not in CREDENTIALS:
        raise NotFound("No credential has this name.")
    return CREDENTIALS[name]


async def _find_configuration(name: NameInPath) -> PlatformSetting[Value]:
    if name not in CONFIGURATION:
        raise NotFound("No setting has this name.")
    return CONFIGURATION[name]


@operations.add(
    "GET",
    "/v1/platform/settings",
    Operation("platform.read", tenant="none"),
    response_model=PlatformSettingsView,
    example=settings_view(example.PLATFORM),
)
async def get_platform_settings(ctx: Ctx) -> Wire:
    """Return every setting and its source. For a credential, the response only shows whether it is configured."""
    return settings_view(await ctx.platform_settings.list_all())


# Left out of the published document because it takes an operator's credentials (API v1, "Versioning" 1).
@operations.add(
    "PUT",
    "/v1/platform/settings/secrets/{name}",
    Operation("platform.change", tenant="none", problems=(NotFound,)),
    include_in_schema=False,
)
async def put_platform_secret(
    ctx: Ctx,
    user: CallingUser,
    setting: Annotated[PlatformSetting[Secret], Depends(_find_credential)],
    body: PutSecret,
) -> SecretView:
    """Rotate a credential."""
    return secret_view(await service.put_secret(ctx, user, setting.name, _check(setting, body.value)))


@operations.add(
    "PUT",
    "/v1/platform/settings/configuration/{name}",
    Operation("platform.change", tenant="none", problems=(NotFound,)),
    example=setting_view(example.MAIL_HOST),
)
async def put_platform_configuration(
    ctx: Ctx,
    user: CallingUser,
    setting: Annotated[PlatformSetting[Value], Depends(_find_configuration)],
    body: PutConfiguration,
) -> SettingView:
    """Override a setting. Null removes the override."""
    value = None if body.value is None else _check(setting, body.value)
    return setting_view(await service.put_configuration(ctx, user, setting.name, value))


def _check(setting: PlatformSetting[V], value: Any) -> V:
    """Return `value` as a value of the setting.

    Raises: RequestValidationError.
    """
    try:
        return setting.check(value)
    except ValueError as error:
        raise invalid("body", "value", str(error)) from None
