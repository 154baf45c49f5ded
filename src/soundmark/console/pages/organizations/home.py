"""The home page of an organisation: what is on air, what is used, and what needs attention."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from soundmark_sdk.client.records import Usage
from starlette.responses import Response

from soundmark.console.charts import forecast_month
from soundmark.console.intents import write_headline
from soundmark.console.navigation import list_areas
from soundmark.console.on_air import OnAir, count_on_air, find_on_air, write_count
from soundmark.console.pages.organizations.attention import (
    Concern,
    judge_endpoints,
    judge_invitations,
    judge_keys,
    judge_subscriptions,
)
from soundmark.console.pages.organizations.endpoints import check_endpoints
from soundmark.console.parts import read_parts
from soundmark.console.running import find_running
from soundmark.console.visit import Visit

_JUDGES: Final[Mapping[str, Callable[[Visit, Iterable[Any]], Iterator[Concern]]]] = {
    "endpoints": judge_endpoints,
    "keys": judge_keys,
    "subscriptions": judge_subscriptions,
    "invitations": judge_invitations,
}


async def show_home(visit: Visit) -> Response:
    """Show an organisation. What the person's role may not read is absent; what Core cannot say now is said so."""
    parts = await read_parts(_list_calls(visit))
    on_air, usage, endpoints = count_on_air(parts.get("on_air")), parts["usage"], parts.get("endpoints")
    judged = [name for name in _JUDGES if name in parts]
    concerns = [each for name in judged if parts[name] is not None for each in _JUDGES[name](visit, parts[name].data)]
    projects = parts["projects"]
    running = None if projects is None else await find_running(visit, projects)
    return visit.page(
        "organizations/home.html",
        tiles=[
            *([] if on_air is None else [_make_on_air_tile(visit, on_air)]),
            *([] if usage is None else [_make_usage_tile(visit, usage)]),
        ],
        usage=usage,
        on_air=on_air,
        reads_codes="on_air" in parts,
        projects=projects,
        running=running,
        project_names={} if projects is None else {each.id: each.name for each in projects.data},
        is_judged=bool(judged),
        concerns=concerns,
        is_judged_in_part=any(parts[name] is None for name in judged)
        or (endpoints is not None and not endpoints.is_complete),
        write_headline=write_headline,
        now=visit.console.clock.now(),
    )


def _list_calls(visit: Visit) -> dict[str, Awaitable[Any]]:
    """Return the calls that the person's role may make, by the part of the page that they are for."""
    assert visit.organization is not None, "the route loads it"
    core, areas = visit.core, visit.areas
    calls: dict[str, Awaitable[Any]] = {"projects": core.projects.page(), "usage": core.usage()}
    if "codes" in list_areas(visit.organization.role, in_project=True):
        calls["on_air"] = find_on_air(visit)
    if "webhooks" in areas:
        calls["endpoints"] = check_endpoints(visit)
    if "billing" in areas:
        calls["subscriptions"] = core.subscriptions.page()
    if visit.may_manage:
        calls |= {"keys": core.api_keys.page(), "invitations": core.invitations.page()}
    return calls


def _make_on_air_tile(visit: Visit, on_air: OnAir) -> dict[str, str]:
    return {"label": visit.say("organizations.on_air"), "value": write_count(visit, on_air)}


def _make_usage_tile(visit: Visit, usage: Usage) -> dict[str, str]:
    """Return the Codes of the month against the quota, and where their pace leads."""
    codes, number = usage.codes, visit.language.number
    expected = forecast_month(codes.issued, visit.console.clock.now())
    note = visit.say("organizations.of_quota", quota=number(codes.monthly_quota))
    if expected is not None:
        note = f"{note} {visit.say('organizations.forecast', count=expected)}"
    is_short = expected is not None and expected > codes.monthly_quota
    return {
        "label": visit.say("organizations.issued_this_month"),
        "value": number(codes.issued),
        "href": f"{visit.tenant_path}/usage",
        "note": note,
        "tone": "danger" if not codes.remaining else "warn" if is_short else "",
    }
