"""The request and response shapes of platform settings. No response holds a credential."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import (
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
)

from soundmark.core.domain.platform.settings import EffectiveSetting, SecretStatus, SettingSource
from soundmark.core.live.platform_settings import PlatformOverview
from soundmark.settings.registry import CONFIGURATION, CREDENTIALS, SECRET_CHARS_MAX, TEXT_CHARS_MAX
from soundmark.wire.shape import Timestamp, Wire


def _refuse_as_one(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Return the validated value. One message instead of one for each kind, whose places no JSON pointer can name.

    Raises: ValueError.
    """
    try:
        return validate(value)
    except ValidationError:
        message = f"must be a string of at most {TEXT_CHARS_MAX} characters, an exact number, a boolean or null"
        raise ValueError(message) from None


class PutSecret(Wire):
    """A credential, which replaces the previous one."""

    value: Annotated[str, StringConstraints(min_length=1, max_length=SECRET_CHARS_MAX), Field(repr=False)]


class PutConfiguration(Wire):
    """An override of a setting. Null removes it; then the environment or the default applies again."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "mail.example.org"}]})

    value: Annotated[
        Annotated[str, StringConstraints(max_length=TEXT_CHARS_MAX)] | int | float | bool | None,
        WrapValidator(_refuse_as_one),
        Field(description="A value of the setting's type and within its range (else 422)."),
    ]


class SecretView(Wire):
    """Whether a credential is configured (in the database or the environment), and when it was last stored."""

    configured: bool
    updated_at: Timestamp | None


class _SourcedView(Wire):
    source: SettingSource
    updated_at: Timestamp | None


class SettingView(_SourcedView):
    """The effective value of a setting and its source. `updated_at` is null unless the source is the database."""

    value: str | int | float | bool | None


class TextSetting(_SourcedView):
    """A text setting."""

    value: str | None


class WholeSetting(_SourcedView):
    """An integer setting."""

    value: int | None


class RateSetting(_SourcedView):
    """A percentage setting."""

    value: int | float | None


class SwitchSetting(_SourcedView):
    """A boolean setting."""

    value: bool


_VIEWS: Final[Mapping[type, type[Wire]]] = {
    str: TextSetting,
    int: WholeSetting,
    float: RateSetting,
    bool: SwitchSetting,
}
_SECRETS: Final[dict[str, Any]] = dict.fromkeys(CREDENTIALS, SecretView)
_CONFIGURATION: Final[dict[str, Any]] = {name: _VIEWS[setting.value_type] for name, setting in CONFIGURATION.items()}
# The members come from the registry, so a new setting appears without a line here.
SecretsView: Final = create_model("SecretsView", __base__=Wire, __doc__="All credentials by name.", **_SECRETS)
ConfigurationView: Final = create_model(
    "ConfigurationView", __base__=Wire, __doc__="All settings by name.", **_CONFIGURATION
)
PlatformSettingsView: Final = create_model(
    "PlatformSettingsView",
    __base__=Wire,
    __doc__="The settings and credentials that a platform administrator can change.",
    secrets=SecretsView,
    configuration=ConfigurationView,
)


def secret_view(status: SecretStatus) -> SecretView:
    """Return the view of one credential."""
    return SecretView(configured=status.is_configured, updated_at=status.updated_at)


def setting_view(setting: EffectiveSetting) -> SettingView:
    """Return the view of one setting."""
    return SettingView(value=setting.value, source=setting.source, updated_at=setting.updated_at)


def settings_view(overview: PlatformOverview) -> Wire:
    """Return the view of every setting: a `PlatformSettingsView`."""
    return PlatformSettingsView.model_validate(
        {
            "secrets": {name: secret_view(status) for name, status in overview.secrets.items()},
            "configuration": {name: vars(setting_view(setting)) for name, setting in overview.configuration.items()},
        }
    )
