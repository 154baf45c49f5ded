"""The settings of the platform."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from soundmark_sdk.client.records import PlatformSettings, SecretStatus, Setting
from starlette.responses import Response

from soundmark.console.forms import FieldRefused, Form
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit

Kind: TypeAlias = Literal["text", "integer", "decimal", "boolean"]

# The settings that are no text. Those of a later Core are shown as text.
KINDS: Final[Mapping[str, Kind]] = {
    "accounting_enable_invoice_sync": "boolean",
    "accounting_entity_id": "integer",
    "accounting_tva_rate": "decimal",
    "smtp_port": "integer",
    "smtp_secure": "boolean",
    "support_desk_mailbox_id": "integer",
}
# By what their names begin with, in the order of the page.
SYSTEMS: Final = ("smtp", "support", "accounting", "card", "local")
_OTHER: Final = "rest"
_DECIMAL: Final = re.compile(r"-?[0-9]{1,12}([.,][0-9]{1,6})?")


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting or a credential: exactly one of `configuration` and `secret` is not None."""

    name: str
    configuration: Setting | None
    secret: SecretStatus | None


async def show_settings(visit: Visit) -> Response:
    """Show all settings by the system that they are about."""
    settings = await visit.core.platform.settings()
    return visit.page("platform/settings.html", systems=_group_by_system(settings))


def _group_by_system(settings: PlatformSettings) -> list[tuple[str, list[ShownSetting]]]:
    shown = [
        *(ShownSetting(name, each, None) for name, each in settings.configuration.items()),
        *(ShownSetting(name, None, each) for name, each in settings.secrets.items()),
    ]
    groups = {system: [each for each in shown if _find_system(each.name) == system] for system in (*SYSTEMS, _OTHER)}
    return [(system, found) for system, found in groups.items() if found]


def _find_system(name: str) -> str:
    system = name.partition("_")[0]
    return system if system in SYSTEMS else _OTHER


async def show_secret(visit: Visit) -> Response:
    """Show the form that replaces a credential. Nobody sees the one that is there."""
    settings, name = await visit.core.platform.settings(), _name(visit)
    if name not in settings.secrets:
        raise TenantUnknown
    return visit.page("platform/secret.html", name=name, secret=settings.secrets[name])


async def put_secret(visit: Visit) -> Response:
    """Set a credential."""
    await visit.core.platform.put_secret(_name(visit), visit.form.text("value"))
    return visit.redirect("/platform", "platform.secret_set", name=_name(visit))


async def show_configuration(visit: Visit) -> Response:
    """Show the form that overrides a setting."""
    settings, name = await visit.core.platform.settings(), _name(visit)
    if name not in settings.configuration:
        raise TenantUnknown
    kind = KINDS.get(name, "text")
    return visit.page("platform/configuration.html", name=name, kind=kind, setting=settings.configuration[name])


async def put_configuration(visit: Visit) -> Response:
    """Override a setting."""
    name = _name(visit)
    await visit.core.platform.put_configuration(name, _read_value(visit.form, KINDS.get(name, "text")))
    return visit.redirect("/platform", "platform.setting_changed", name=name)


async def remove_override(visit: Visit) -> Response:
    """Let a setting have the value of the environment, or its default, again."""
    await visit.core.platform.put_configuration(_name(visit), None)
    return visit.redirect("/platform", "platform.override_removed", name=_name(visit))


def _read_value(form: Form, kind: Kind) -> str | float | bool:
    match kind:
        case "boolean":
            return form.text("value") == "true"
        case "integer":
            return form.integer("value")
        case "decimal":
            return _read_decimal(form.text("value"))
        case "text":
            return form.text("value")


def _read_decimal(text: str) -> float:
    """Return a number whose decimals follow a point or, as the French write it, a comma."""
    if _DECIMAL.fullmatch(text) is None:
        raise FieldRefused("value", "platform.not_a_number")
    return float(text.replace(",", "."))


def _name(visit: Visit) -> str:
    return visit.parameter("name")
