"""The settings of the platform."""

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

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
_DECIMAL: Final = re.compile(r"-?[0-9]{1,12}([.,][0-9]{1,6})?")


async def show_settings(visit: Visit) -> Response:
    """Show all settings."""
    return visit.page("platform/settings.html", settings=await visit.core.platform.settings())


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
