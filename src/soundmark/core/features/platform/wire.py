"""What is asked and answered about platform settings. A credential goes in and never comes out."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field, StringConstraints

from soundmark.core.configuration import Everything
from soundmark.core.domain.platform import SECRET_CHARS_MAX, Effective, SecretStatus, Source
from soundmark.wire.shape import Timestamp, Wire

_TEXT_CHARS_MAX: Final = 2048  # The longest that any setting takes, which is an address.


class PutSecret(Wire):
    """A credential in the place of the one before."""

    value: Annotated[str, StringConstraints(min_length=1, max_length=SECRET_CHARS_MAX), Field(repr=False)]


class PutConfiguration(Wire):
    """An override; null removes it, and what the environment or the default says holds again."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "mail.example.org"}]})

    value: Annotated[
        Annotated[str, StringConstraints(max_length=_TEXT_CHARS_MAX)] | int | float | bool | None,
        Field(description="Of the kind and in the bounds that the setting's name says (else 422)."),
    ]


class SecretView(Wire):
    """Whether a credential is there, from the database or the environment, and when the database got it."""

    configured: bool
    updated_at: Timestamp | None


class SecretsView(Wire):
    """Every credential by its name."""

    accounting_api_key: SecretView
    card_secret_key: SecretView
    card_webhook_secret: SecretView
    local_public_key: SecretView
    local_secret_key: SecretView
    smtp_password: SecretView
    smtp_username: SecretView
    support_api_key: SecretView
    support_webhook_secret: SecretView


class _Sourced(Wire):
    source: Source
    updated_at: Timestamp | None


class SettingView(_Sourced):
    """What holds, and who says so. `updated_at` is null unless it is the database."""

    value: str | int | float | bool | None


class TextSetting(_Sourced):
    """A setting that is a text."""

    value: str | None


class WholeSetting(_Sourced):
    """A setting that is a whole number."""

    value: int | None


class RateSetting(_Sourced):
    """A setting that is a percentage."""

    value: int | float | None


class SwitchSetting(_Sourced):
    """A setting that is on or off."""

    value: bool


class ConfigurationView(Wire):
    """Every setting by its name."""

    accounting_base_url: TextSetting
    accounting_enable_invoice_sync: SwitchSetting
    accounting_entity_id: WholeSetting
    accounting_tva_rate: RateSetting
    smtp_from_email: TextSetting
    smtp_from_name: TextSetting
    smtp_host: TextSetting
    smtp_port: WholeSetting
    smtp_secure: SwitchSetting
    support_desk_base_url: TextSetting
    support_desk_mailbox_id: WholeSetting


class PlatformSettingsView(Wire):
    """Everything that an administrator of the platform may set."""

    secrets: SecretsView
    configuration: ConfigurationView


def secret_view(status: SecretStatus) -> SecretView:
    """What is answered of one credential."""
    return SecretView(configured=status.is_configured, updated_at=status.updated_at)


def setting_view(setting: Effective) -> SettingView:
    """What is answered of one setting."""
    return SettingView(value=setting.value, source=setting.source, updated_at=setting.updated_at)


def settings_view(everything: Everything) -> PlatformSettingsView:
    """What is answered of all of them; the shapes name each setting, so none is forgotten and none slips through."""
    secrets = {name: secret_view(status) for name, status in everything.secrets.items()}
    settings = {name: setting_view(setting).__dict__ for name, setting in everything.values.items()}
    return PlatformSettingsView(
        secrets=SecretsView.model_validate(secrets), configuration=ConfigurationView.model_validate(settings)
    )
