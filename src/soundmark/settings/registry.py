"""The registry of platform settings, which an administrator may change while everything runs.

Each field is one setting, with its name, type, check, default and a line of description. A field of type `Secret` is a
credential, which the API accepts and never shows; every other field is configuration. Everything else about a setting
is derived from its field: the environment variable, the member of `GET /v1/platform/settings`, the name and the check
of its PUT route, and its row in docs/settings.md. A feature reads a group with `core.live.platform_settings`.

Source: API v1, "Platform settings"; contract, section 7.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, ClassVar, Final, Generic, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)

from soundmark.kit.crypto.secret import Secret, split_secrets
from soundmark.kit.settings import ENVIRONMENT, Settings, error_message
from soundmark.kit.text.validation import check_ascii_email, check_host, check_url
from soundmark.settings.fields import Allowed, Port

Value: TypeAlias = str | int | float | bool

SECRET_CHARS_MAX: Final = 4096  # Contract, section 7.
TEXT_CHARS_MAX: Final = 2048  # The longest text that a setting takes, which is a URL.

_NAME_CHARS_MAX: Final = 120
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_WEBHOOK_SECRETS_MAX: Final = 2  # Contract, section 7: while one is rotated.
_ID_MAX: Final = 2**31 - 1  # Both providers keep their ids in 32-bit columns.


def _secret_text(text: str) -> Secret:
    if len(text) > SECRET_CHARS_MAX:
        raise ValueError(f"must have at most {SECRET_CHARS_MAX} characters")
    if _CONTROL.search(text):  # Such as a pasted line break, with which no header can be sent.
        raise ValueError("must have no control characters, such as a line break")
    return Secret(text)


def _webhook_secret_text(text: str) -> Secret:
    secret = _secret_text(text)
    parts = text.split(",")
    if len(parts) > _WEBHOOK_SECRETS_MAX or len(split_secrets(secret)) < len(parts):
        raise ValueError("must be one secret, or two separated by a comma")
    return secret


def _service_url(text: str, info: ValidationInfo) -> str:
    return check_url(text, "secure" if info.context == ENVIRONMENT else "https").rstrip("/")


def _percentage(value: float) -> int | float:
    if round(value, 2) != value:  # VAT rates have two decimals.
        raise ValueError("must have at most two decimals")
    return int(value) if value == int(value) else value


def _submission_port(settings: dict[str, Any]) -> int:
    return 465 if settings.get("smtp_secure", True) else 587  # RFC 8314, section 3.3; RFC 6409, section 3.1.


SecretText = Annotated[
    Secret,
    BeforeValidator(_secret_text),
    Allowed(f"a credential of 1 to {SECRET_CHARS_MAX} characters without control characters"),
]
WebhookSecretText = Annotated[
    Secret,
    BeforeValidator(_webhook_secret_text),
    Allowed(f"1 to {SECRET_CHARS_MAX} characters without control characters: one secret, or two separated by a comma"),
]
Host = Annotated[str, AfterValidator(check_host), Allowed("a host name or an IP address")]
Email = Annotated[str, AfterValidator(check_ascii_email), Allowed("an e-mail address")]
ServiceUrl = Annotated[
    str,
    Field(max_length=TEXT_CHARS_MAX),
    AfterValidator(_service_url),
    Allowed("`https://…`; from the environment also `http://…` on a loopback address"),
]
SenderName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=_NAME_CHARS_MAX, pattern=r"^[^\x00-\x1f\x7f]*$"),
    Allowed(f"1 to {_NAME_CHARS_MAX} characters without control characters"),
]
ProviderId = Annotated[int, Field(ge=1, le=_ID_MAX)]
Percentage = Annotated[
    float, Field(ge=0, le=100), AfterValidator(_percentage), Allowed("0 to 100 with at most two decimals")
]


class PlatformGroup(Settings):
    """Platform settings that a feature reads together; `title` is their heading in docs/settings.md."""

    title: ClassVar[str]


class MailServerSettings(PlatformGroup):
    """The mail server, without its credentials."""

    title = "Mail"

    smtp_host: Host | None = Field(None, description="The mail server. If unset, no mail is sent.")
    smtp_secure: bool = Field(
        True,
        description="`true`: TLS from the start. `false`: STARTTLS, which a server on another machine must offer.",
    )
    smtp_port: Port = Field(
        default_factory=_submission_port,
        description="The mail server's port. The default is 587 when `SOUNDMARK_SMTP_SECURE` is `false`.",
    )
    smtp_from_email: Email | None = Field(None, description="The sender's address. If unset, no mail is sent.")
    smtp_from_name: SenderName = Field("Soundmark", description="The sender's name.")


class MailSettings(MailServerSettings):
    """The mail server and the login."""

    smtp_username: SecretText | None = Field(
        None, description="The user name at the mail server. If unset, Core does not log in."
    )
    smtp_password: SecretText | None = Field(None, description="The password at the mail server.")


class CardSettings(PlatformGroup):
    """The card provider."""

    title = "Card payments"

    card_secret_key: SecretText | None = Field(None, description="Authenticates Core to the card provider.")
    card_webhook_secret: WebhookSecretText | None = Field(
        None, description="Verifies the provider's webhooks. During a rotation: two, separated by a comma."
    )


class LocalPaymentSettings(PlatformGroup):
    """The local-currency payment provider."""

    title = "Local-currency payments"

    local_public_key: SecretText | None = Field(None, description="Identifies Core to the local provider.")
    local_secret_key: SecretText | None = Field(None, description="Authenticates Core to the local provider.")


class InvoiceSyncSettings(PlatformGroup):
    """Whether draft invoices are made, which is asked at each payment."""

    title = "Accounting"

    accounting_enable_invoice_sync: bool = Field(
        False, description="Whether draft invoices are created in the accounting system."
    )


class AccountingSettings(InvoiceSyncSettings):
    """The accounting system."""

    accounting_base_url: ServiceUrl | None = Field(None, description="The URL of the accounting system.")
    accounting_api_key: SecretText | None = Field(None, description="Authenticates Core to the accounting system.")
    accounting_entity_id: ProviderId | None = Field(None, description="The entity that issues the invoices.")
    accounting_tva_rate: Percentage | None = Field(None, description="The VAT rate of the invoices, in percent.")


class SupportSettings(PlatformGroup):
    """The support desk."""

    title = "Support desk"

    support_desk_base_url: ServiceUrl | None = Field(None, description="The URL of the support desk.")
    support_desk_mailbox_id: ProviderId | None = Field(None, description="The mailbox that receives the tickets.")
    support_api_key: SecretText | None = Field(None, description="Authenticates Core to the support desk.")
    support_webhook_secret: WebhookSecretText | None = Field(
        None, description="Verifies the desk's webhooks. During a rotation: two, separated by a comma."
    )


class PlatformFallbacks(MailSettings, CardSettings, LocalPaymentSettings, AccountingSettings, SupportSettings):
    """Every platform setting, from the environment of a process; values in the database take precedence."""


V = TypeVar("V", bound=Value | Secret)


@dataclass(frozen=True, slots=True)
class PlatformSetting(Generic[V]):
    """One platform setting. `value_type` is its type without bounds and without None."""

    name: str
    value_type: type[V]
    _adapter: TypeAdapter[V]

    def check(self, value: Any) -> V:
        """Return a value from JSON in the form in which it is stored.

        Raises: ValueError, which says what the value must be, without repeating it.
        """
        try:
            return self._adapter.validate_python(value, strict=True)
        except ValidationError as invalid:
            raise ValueError(error_message(invalid.errors(include_input=False)[0]["msg"])) from None


def _platform_settings() -> Mapping[str, PlatformSetting[Any]]:
    """Return every setting by its name, in alphabetical order."""
    hints = get_type_hints(PlatformFallbacks, include_extras=True)
    config = ConfigDict(arbitrary_types_allowed=True)
    return {
        name: PlatformSetting(name, _plain_type(hints[name]), TypeAdapter(hints[name], config=config))
        for name in sorted(PlatformFallbacks.model_fields)
    }


def _plain_type(hint: Any) -> type:
    """Return the type inside `Annotated[…]` and `… | None`."""
    if get_origin(hint) is Annotated:
        return _plain_type(get_args(hint)[0])
    options = [option for option in get_args(hint) if option is not NoneType]
    return _plain_type(options[0]) if options else hint


_SETTINGS: Final = _platform_settings()
CREDENTIALS: Final[Mapping[str, PlatformSetting[Secret]]] = {
    name: setting for name, setting in _SETTINGS.items() if setting.value_type is Secret
}
CONFIGURATION: Final[Mapping[str, PlatformSetting[Value]]] = {
    name: setting for name, setting in _SETTINGS.items() if setting.value_type is not Secret
}
