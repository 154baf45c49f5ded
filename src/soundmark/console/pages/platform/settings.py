"""The settings of the platform."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final, Literal, TypeAlias

from soundmark_sdk.client import ApiProblem
from soundmark_sdk.client.records import PlatformSettings, SecretStatus, Setting, SystemTest
from starlette.responses import Response

from soundmark.console.forms import FieldRefused, Form
from soundmark.console.troubles import TenantUnknown, describe
from soundmark.console.visit import Visit

Kind: TypeAlias = Literal["text", "integer", "decimal", "boolean"]
TestedSystem: TypeAlias = Literal["mail", "desk", "accounting", "card"]

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
# What Core calls the systems that it can test.
TESTED: Final[Mapping[str, TestedSystem]] = {
    "smtp": "mail",
    "support": "desk",
    "accounting": "accounting",
    "card": "card",
}
_INVALID: Final = "validation_failed"
_DECIMAL: Final = re.compile(r"-?[0-9]{1,12}([.,][0-9]{1,6})?")


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting or a credential: exactly one of `configuration` and `secret` is not None."""

    name: str
    configuration: Setting | None
    secret: SecretStatus | None


async def show_settings(visit: Visit) -> Response:
    """Show all settings by the system that they are about."""
    return await _show(visit, None)


async def test_system(visit: Visit) -> Response:
    """Test a system with the settings that apply, and show all settings with the result beside those of the system."""
    if (tested := TESTED.get(_system(visit))) is None:
        raise TenantUnknown
    return await _show(visit, await visit.core.platform.test_system(tested))


async def _show(visit: Visit, result: SystemTest | None) -> Response:
    systems = _group_by_system(await visit.core.platform.settings())
    return visit.page("platform/settings.html", systems=systems, tested=TESTED, result=result)


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


async def show_system(visit: Visit) -> Response:
    """Show the form of all settings of a system but its credentials."""
    return visit.page("platform/system.html", system=_system(visit), kinds=KINDS, settings=await _find_settings(visit))


async def put_system(visit: Visit) -> Response:
    """Override the settings of a system that were changed in the form, each by a call of its own, after all were read.

    Where Core refuses one, those before it apply already; the form is shown again and says of each what applies.
    """
    names = list(await _find_settings(visit))
    changed = [name for name in names if visit.form.text(name) != visit.form.text(f"shown_{name}")]
    for index, (name, value) in enumerate([(name, _read_value(visit.form, name)) for name in changed]):
        try:
            await visit.core.platform.put_configuration(name, value)
        except ApiProblem as refused:
            is_invalid = refused.code == _INVALID
            if refused.status == HTTPStatus.UNAUTHORIZED or not (is_invalid or index):
                raise
            trouble = describe(refused, visit.language)
            detail = visit.say("platform.system_saved_in_part") if index else trouble.detail
            fields = {name: " ".join(trouble.fields.values())} if is_invalid else {}
            visit.trouble = replace(trouble, detail=detail, fields=fields)
            return await show_system(visit)
    return visit.redirect("/platform", "platform.system_saved" if changed else "platform.system_unchanged")


async def _find_settings(visit: Visit) -> dict[str, Setting]:
    """Return the settings of the system in the URL.

    Raises: TenantUnknown for a system without any. soundmark_sdk.ClientFailure.
    """
    configuration = (await visit.core.platform.settings()).configuration
    found = {name: each for name, each in configuration.items() if _find_system(name) == _system(visit)}
    if not found:
        raise TenantUnknown
    return found


async def remove_override(visit: Visit) -> Response:
    """Let a setting have the value of the environment, or its default, again."""
    await visit.core.platform.put_configuration(_name(visit), None)
    return visit.redirect("/platform", "platform.override_removed", name=_name(visit))


def _read_value(form: Form, name: str) -> str | float | bool:
    match KINDS.get(name, "text"):
        case "boolean":
            return form.text(name) == "true"
        case "integer":
            return form.integer(name)
        case "decimal":
            return _read_decimal(name, form.text(name))
        case "text":
            return form.text(name)


def _read_decimal(name: str, text: str) -> float:
    """Return a number whose decimals follow a point or, as the French write it, a comma."""
    if _DECIMAL.fullmatch(text) is None:
        raise FieldRefused(name, "platform.not_a_number")
    return float(text.replace(",", "."))


def _name(visit: Visit) -> str:
    return visit.parameter("name")


def _system(visit: Visit) -> str:
    return visit.parameter("system")
