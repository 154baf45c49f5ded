"""The routes of platform settings."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from soundmark.core.domain.platform import (
    CONFIGURATION_NAMES,
    SECRET_NAMES,
    ConfigurationName,
    SecretName,
    check_value,
)
from soundmark.core.domain.scope import User
from soundmark.core.edge import CallerOf, Ctx, invalid, needs, problems
from soundmark.core.features.platform import service
from soundmark.core.features.platform.wire import (
    PlatformSettingsView,
    PutConfiguration,
    PutSecret,
    SecretView,
    SettingView,
    secret_view,
    setting_view,
    settings_view,
)
from soundmark.kit.http import StrictRoute
from soundmark.kit.problems import NotFound
from soundmark.kit.secret import Secret

router = APIRouter(route_class=StrictRoute, tags=["Platform"])

NameInPath = Annotated[str, Path(max_length=160, description="The setting's name.", examples=["smtp_host"])]


async def _secret_name(name: NameInPath) -> SecretName:
    for known in SECRET_NAMES:
        if known == name:
            return known
    raise NotFound


async def _configuration_name(name: NameInPath) -> ConfigurationName:
    for known in CONFIGURATION_NAMES:
        if known == name:
            return known
    raise NotFound


@router.get(
    "/v1/platform/settings",
    dependencies=[Depends(CallerOf("platform.read"))],
    openapi_extra=needs("platform.read"),
)
async def get_platform_settings(ctx: Ctx) -> PlatformSettingsView:
    """Show what is configured and where it comes from. Of credentials it shows only whether they are there."""
    return settings_view(await ctx.configuration.everything())


# Not in the published document, as API v1, "Versioning" 1 has it of what takes an operator's credentials.
@router.put(
    "/v1/platform/settings/secrets/{name}",
    responses=problems(NotFound),
    openapi_extra=needs("platform.change"),
    include_in_schema=False,
)
async def put_platform_secret(
    ctx: Ctx,
    user: Annotated[User, Depends(CallerOf("platform.change"))],
    name: Annotated[SecretName, Depends(_secret_name)],
    body: PutSecret,
) -> SecretView:
    """Put a credential in the place of the one before."""
    return secret_view(await service.put_secret(ctx, user, name, Secret(body.value)))


@router.put(
    "/v1/platform/settings/configuration/{name}",
    responses=problems(NotFound),
    openapi_extra=needs("platform.change"),
)
async def put_platform_configuration(
    ctx: Ctx,
    user: Annotated[User, Depends(CallerOf("platform.change"))],
    name: Annotated[ConfigurationName, Depends(_configuration_name)],
    body: PutConfiguration,
) -> SettingView:
    """Override a setting, or remove the override with null."""
    try:
        value = None if body.value is None else check_value(name, body.value)
    except ValueError as error:
        raise invalid("body", "value", str(error)) from None
    return setting_view(await service.put_configuration(ctx, user, name, value))
