"""The OpenAPI links: which operations can follow a response, with parameters taken from that response."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]
# The parameters of each operation that can follow, as runtime expressions.
Following: TypeAlias = Mapping[str, Mapping[str, str]]

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_FIRST: Final = "/data/0"  # The first entry of a page or a batch: OpenAPI has no expression for every entry.
_REQUESTED_ORGANIZATION: Final = "$request.query.organization_id"
_REQUESTED_PROJECT: Final = "$request.query.project_id"
# One operation may take a parameter of the same name in several places; a link uses the first of these.
_PLACES: Final = ("path", "query", "header", "cookie")


_ON_ORGANIZATION: Final = (
    "rename_organization",
    "list_projects",
    "list_codes",
    "list_api_keys",
    "list_members",
    "list_invitations",
    "list_audit_entries",
    "list_webhook_endpoints",
    "verify_audit_log",
    "get_usage",
    "export_organization",
)
_ON_PROJECT: Final = (
    "rename_project",
    "preview_project_deletion",
    "list_campaigns",
    "list_codes",
    "list_api_keys",
    "list_integrations",
    "read_legacy_report",
    "export_project",
)
_ON_CAMPAIGN: Final = ("update_campaign", "archive_campaign", "stop_campaign", "summarise_campaign", "list_codes")
_ON_INTEGRATION: Final = (
    "read_audience_report",
    "rename_integration",
    "rotate_integration_secret",
    "change_integration_retention",
    "replace_integration_core_key",
    "revoke_integration",
)


_ON_WEBHOOK_ENDPOINT: Final = (
    "get_webhook_endpoint",
    "update_webhook_endpoint",
    "roll_webhook_secret",
    "list_webhook_deliveries",
    "replay_webhook_events",
    "test_webhook_endpoint",
)


def _of_organization(at: str, identity: str = "id") -> Following:
    return dict.fromkeys(_ON_ORGANIZATION, _take(at, organization_id=identity))


def _of_own_organization(at: str) -> Following:
    """Add what only an owner may do."""
    return {**_of_organization(at), "preview_organization_deletion": _take(at, organization_id="id")}


def _of_joined_organization(at: str) -> Following:
    """Leave out the export, which is only for owners: nobody is invited as one."""
    links = dict(_of_organization(at, "organization_id"))
    del links["export_organization"]
    return links


def _of_project(at: str) -> Following:
    return dict.fromkeys(_ON_PROJECT, _take(at, organization_id="organization_id", project_id="id"))


def _of_member(at: str) -> Following:
    member = {"organization_id": _REQUESTED_ORGANIZATION} | _take(at, subject_id="subject_id")
    return dict.fromkeys(("change_member", "remove_member"), member)


def _of_invitation(at: str) -> Following:
    return {"revoke_invitation": _take(at, organization_id="organization_id", invitation_id="id")}


def _of_api_key(at: str) -> Following:
    key = _take(at, organization_id="organization_id", api_key_id="id")
    return dict.fromkeys(("rename_api_key", "revoke_api_key", "rotate_api_key_secret"), key)


def _of_campaign(at: str) -> Following:
    return dict.fromkeys(_ON_CAMPAIGN, _take(at, organization_id="organization_id", campaign_id="id"))


def _of_archived_campaign(at: str) -> Following:
    """Leave out changes: an archived campaign is final, but its Codes can still be stopped."""
    campaign = _take(at, organization_id="organization_id", campaign_id="id")
    return dict.fromkeys(("stop_campaign", "summarise_campaign", "list_codes"), campaign)


def _of_code(at: str) -> Following:
    code = _take(at, organization_id="organization_id", xr_id="xr_id")
    resolve = {"resolve": _take(at, broadcast_token="broadcast_token")}  # noqa: S106 - the name of a member
    return dict.fromkeys(("get_code", "revoke_code", "render_code"), code) | resolve


def _of_revoked_code(at: str) -> Following:
    return {"get_code": _take(at, organization_id="organization_id", xr_id="xr_id")}


def _of_integration(at: str) -> Following:
    integration = _take(at, organization_id="organization_id", project_id="project_id", integration_id="id")
    return dict.fromkeys(_ON_INTEGRATION, integration)


def _of_revoked_integration(at: str) -> Following:
    """Keep only the report: nothing else can be done with a revoked integration."""
    return {"read_audience_report": _of_integration(at)["read_audience_report"]}


def _of_changed_integration(at: str) -> Following:
    """Take organisation and project from the request, because the response names only the integration."""
    project = {"organization_id": _REQUESTED_ORGANIZATION, "project_id": _REQUESTED_PROJECT}
    return dict.fromkeys(_ON_INTEGRATION, project | _take(at, integration_id="integration_id"))


def _of_checkout(at: str) -> Following:
    """Take the organisation from the request, because the response names only the checkout."""
    return {"get_checkout": {"organization_id": _REQUESTED_ORGANIZATION} | _take(at, checkout_id="id")}


def _of_webhook_endpoint(at: str) -> Following:
    endpoint = _take(at, organization_id="organization_id", endpoint_id="id")
    return dict.fromkeys(_ON_WEBHOOK_ENDPOINT, endpoint)


def _of_webhook_delivery(at: str) -> Following:
    event = {"organization_id": _REQUESTED_ORGANIZATION} | _take(at, event_id="event_id")
    return {"get_webhook_event": event}


def _of_ticket(at: str) -> Following:
    """Take the organisation from the request, because the response names only the ticket."""
    return {"get_ticket": {"organization_id": _REQUESTED_ORGANIZATION} | _take(at, ticket_id="id")}


def _of_audit_log(_: str) -> Following:
    return {"verify_audit_log": {"organization_id": _REQUESTED_ORGANIZATION}}


def _take(at: str, **members: str) -> dict[str, str]:
    """Return each parameter with the expression for its value: a member of the response below the pointer `at`."""
    return {parameter: f"$response.body#{at}/{member}" for parameter, member in members.items()}


# What each successful response holds, and at which JSON pointer.
_HELD: Final[Mapping[tuple[str, str], tuple[Callable[[str], Following], str]]] = {
    ("create_organization", "201"): (_of_own_organization, ""),
    ("rename_organization", "200"): (_of_organization, ""),
    ("list_organizations", "200"): (_of_organization, _FIRST),
    ("accept_invitation", "200"): (_of_joined_organization, ""),
    ("create_project", "201"): (_of_project, ""),
    ("rename_project", "200"): (_of_project, ""),
    ("list_projects", "200"): (_of_project, _FIRST),
    ("list_members", "200"): (_of_member, _FIRST),
    ("change_member", "200"): (_of_member, ""),
    ("create_invitation", "201"): (_of_invitation, ""),
    ("list_invitations", "200"): (_of_invitation, _FIRST),
    ("create_api_key", "201"): (_of_api_key, ""),
    ("rotate_api_key_secret", "200"): (_of_api_key, ""),
    ("list_api_keys", "200"): (_of_api_key, _FIRST),
    ("list_audit_entries", "200"): (_of_audit_log, ""),
    ("create_campaign", "201"): (_of_campaign, ""),
    ("update_campaign", "200"): (_of_campaign, ""),
    ("archive_campaign", "200"): (_of_archived_campaign, ""),
    ("stop_campaign", "200"): (_of_archived_campaign, "/campaign"),
    ("summarise_campaign", "200"): (_of_campaign, "/campaign"),
    ("list_campaigns", "200"): (_of_campaign, _FIRST),
    ("issue_code", "201"): (_of_code, ""),
    ("issue_codes", "201"): (_of_code, _FIRST),
    ("recover_code", "200"): (_of_code, ""),
    ("recover_codes", "200"): (_of_code, _FIRST),
    ("get_code", "200"): (_of_code, ""),
    ("revoke_code", "200"): (_of_revoked_code, ""),
    ("list_codes", "200"): (_of_code, _FIRST),
    ("create_integration", "201"): (_of_integration, ""),
    ("rotate_integration_secret", "200"): (_of_integration, ""),
    ("revoke_integration", "200"): (_of_revoked_integration, ""),
    ("list_integrations", "200"): (_of_integration, _FIRST),
    ("create_webhook_endpoint", "201"): (_of_webhook_endpoint, ""),
    ("list_webhook_endpoints", "200"): (_of_webhook_endpoint, _FIRST),
    ("get_webhook_endpoint", "200"): (_of_webhook_endpoint, ""),
    ("update_webhook_endpoint", "200"): (_of_webhook_endpoint, ""),
    ("roll_webhook_secret", "200"): (_of_webhook_endpoint, ""),
    ("list_webhook_deliveries", "200"): (_of_webhook_delivery, _FIRST),
    ("create_checkout", "201"): (_of_checkout, ""),
    ("create_ticket", "201"): (_of_ticket, ""),
    ("list_tickets", "200"): (_of_ticket, _FIRST),
    ("change_integration_retention", "200"): (_of_changed_integration, ""),
    ("replace_integration_core_key", "200"): (_of_changed_integration, ""),
}


def add_links(paths: Mapping[str, Json]) -> None:
    """Add to each response links to the operations that can follow it, and to each page a link to the next.

    Source: OpenAPI 3.1, "Link Object" and "Runtime Expressions".
    """
    operations = {operation["operationId"]: operation for operation in _operations(paths)}
    for (source, status), (following, at) in _HELD.items():
        links = operations[source]["responses"][status].setdefault("links", {})
        for target, values in following(at).items():
            links[target] = _link(operations[target], values, _sentence(operations[target]["description"]))
    for operation in operations.values():
        if any(parameter["name"] == "cursor" for parameter in operation.get("parameters", ())):
            operation["responses"]["200"].setdefault("links", {})["next_page"] = _next_page(operation)


def _operations(paths: Mapping[str, Json]) -> Iterator[Json]:
    for methods in paths.values():
        yield from (methods[method] for method in _METHODS if method in methods)


def _link(target: Json, values: Mapping[str, str], description: str) -> Json:
    parameters = {_find_place(target, name): expression for name, expression in values.items()}
    return {"operationId": target["operationId"], "parameters": parameters, "description": description}


def _find_place(operation: Json, name: str) -> str:
    places = {parameter["in"] for parameter in operation["parameters"] if parameter["name"] == name}
    assert places, f"{operation['operationId']} takes no {name}"
    return f"{next(place for place in _PLACES if place in places)}.{name}"


def _next_page(operation: Json) -> Json:
    """Return the link to the next page of the list, with the same filters, to which the cursor is bound."""
    places = [(parameter["in"], parameter["name"]) for parameter in operation["parameters"]]
    parameters = {f"{place}.{name}": f"$request.{place}.{name}" for place, name in places if name != "cursor"}
    parameters["query.cursor"] = "$response.body#/next_cursor"
    description = "The next page. On the last page, `next_cursor` is null."
    return {"operationId": operation["operationId"], "parameters": parameters, "description": description}


def _sentence(text: str) -> str:
    """Return the first sentence of a description."""
    first = " ".join(text.split("\n\n", 1)[0].split())
    return first.split(". ", 1)[0].rstrip(".") + "."
