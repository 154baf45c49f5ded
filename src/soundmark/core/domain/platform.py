"""What an operator may set while everything runs: credentials by their names, and configuration with its rules."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from soundmark.kit.validation import check_ascii_email, check_host, check_url

# Contract, section 7.
SecretName = Literal[
    "accounting_api_key",
    "card_secret_key",
    "card_webhook_secret",
    "local_public_key",
    "local_secret_key",
    "smtp_password",
    "smtp_username",
    "support_api_key",
    "support_webhook_secret",
]
# API v1, "Platform settings".
ConfigurationName = Literal[
    "accounting_base_url",
    "accounting_enable_invoice_sync",
    "accounting_entity_id",
    "accounting_tva_rate",
    "smtp_from_email",
    "smtp_from_name",
    "smtp_host",
    "smtp_port",
    "smtp_secure",
    "support_desk_base_url",
    "support_desk_mailbox_id",
]
Value: TypeAlias = str | int | float | bool
Source = Literal["database", "environment", "default"]

SECRET_NAMES: Final[tuple[SecretName, ...]] = get_args(SecretName)
CONFIGURATION_NAMES: Final[tuple[ConfigurationName, ...]] = get_args(ConfigurationName)
SECRET_CHARS_MAX: Final = 4096  # Contract, section 7.

_NAME_CHARS_MAX: Final = 120
_URL_CHARS_MAX: Final = 2048
_PORT_MAX: Final = 65535
_ID_MAX: Final = 2**31 - 1  # Both providers keep their ids in 32-bit columns.
_RATE_MAX_PERCENT: Final = 100
_PRINTABLE: Final = re.compile(r"[^\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """A credential as the database keeps it."""

    name: str
    sealed: bytes
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class StoredValue:
    """An override as the database keeps it; `value` is JSON."""

    name: str
    value: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class SecretStatus:
    """What may be told of a credential. `updated_at` is None where the database has none."""

    is_configured: bool
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Effective:
    """What holds now and where it comes from; `value` is None where nobody set it and there is no default."""

    value: Value | None
    source: Source
    updated_at: datetime | None


def check_value(name: ConfigurationName, value: Any) -> Value:
    """The value in the form in which it is kept.

    Raises: ValueError, saying what it must be and not what it was.
    """
    return _CHECKS[name](value)


def default_of(name: ConfigurationName, *, is_implicit_tls: bool) -> Value | None:
    """What holds where nobody says anything."""
    if name == "smtp_port":
        return 465 if is_implicit_tls else 587  # RFC 8314, section 3.3; RFC 6409, section 3.1.
    return _DEFAULTS.get(name)


def _url(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _URL_CHARS_MAX:
        raise ValueError("must be an https URL")
    return check_url(value, "https").rstrip("/")


def _host(value: Any) -> str:
    return check_host(value if isinstance(value, str) else "")


def _email(value: Any) -> str:
    return check_ascii_email(value if isinstance(value, str) else "")


def _name(value: Any) -> str:
    trimmed = value.strip() if isinstance(value, str) else ""
    if len(trimmed) > _NAME_CHARS_MAX or _PRINTABLE.fullmatch(trimmed) is None:
        raise ValueError("must be a text of 1 to 120 characters without control characters")
    return trimmed


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise ValueError("must be true or false")


def _whole(least: int, most: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        # A boolean is an int to Python and to nobody else.
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return value

    return check


def _rate(value: Any) -> int | float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Two decimals are what a rate of VAT is written with; NaN is in no range.
    if not is_number or not 0 <= value <= _RATE_MAX_PERCENT or round(value, 2) != value:
        raise ValueError("must be a percentage from 0 to 100 with at most two decimals")
    return int(value) if value == int(value) else float(value)


_CHECKS: Final[Mapping[ConfigurationName, Callable[[Any], Value]]] = {
    "accounting_base_url": _url,
    "accounting_enable_invoice_sync": _boolean,
    "accounting_entity_id": _whole(1, _ID_MAX),
    "accounting_tva_rate": _rate,
    "smtp_from_email": _email,
    "smtp_from_name": _name,
    "smtp_host": _host,
    "smtp_port": _whole(1, _PORT_MAX),
    "smtp_secure": _boolean,
    "support_desk_base_url": _url,
    "support_desk_mailbox_id": _whole(1, _ID_MAX),
}
_DEFAULTS: Final[Mapping[ConfigurationName, Value]] = {
    "accounting_enable_invoice_sync": False,
    "smtp_from_name": "Soundmark",
    "smtp_secure": True,
}
