"""Ids on every page: shown without their middle, and copied whole by a button."""

import re
from typing import Any
from xml.etree.ElementTree import Element

from support.console.client import ConsoleClient
from support.console.page_paths import list_paths, make_one_of_each
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

# As Core mints them; those that people choose say what they are about.
ID = re.compile(r"(?<![A-Za-z0-9_-])[a-z]{2,8}_[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])")
# What shows documents or a choice, or is heard alone.
OTHERS = {"pre", "option", "textarea", "script"}


def find_whole_ids(element: Element) -> list[str]:
    """Return the ids in the text of an element, but for those in a copy field or without their middle."""
    if is_copy_field(element) or element.tag in OTHERS or element.get("class") == "visually-hidden":
        return []
    found = ID.findall(element.text or "")
    for child in element:
        found += find_whole_ids(child) + ID.findall(child.tail or "")
    return found


def is_copy_field(element: Element) -> bool:
    """Return whether a script adds Copy to the element, or it has no room for that, such as in a link."""
    is_short = element.find(".//span[@class='middle']") is not None
    return element.get("data-copy-value") is not None or (element.get("class") == "id" and is_short)


def test_a_whole_id_is_found() -> None:
    row = Element("p")
    row.text = f"xr_{'0' * 22} and offer_studio"
    field = Element("code", {"class": "id"})
    field.text, field.tail = f"org_{'0' * 22}", f"key_{'0' * 22}"
    row.append(field)

    assert find_whole_ids(row) == [f"xr_{'0' * 22}", f"org_{'0' * 22}", f"key_{'0' * 22}"]
    field.set("data-copy-value", "")
    assert find_whole_ids(row) == [f"xr_{'0' * 22}", f"key_{'0' * 22}"]


async def test_no_page_shows_a_whole_id_outside_a_copy_field(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    made = await make_one_of_each(operator, tenant)
    await tenant.make_entitlement(rival)
    await tenant.make_key()
    unnamed = await tenant.make_integration()
    pack = await tenant.make_pack(made["campaign_id"])
    await rival.run(
        "INSERT INTO abuse_reports (id, xr_id, category, status, created_at) VALUES (%s, %s, 'spam', 'open', now())",
        *(f"abr_{'0' * 22}", made["xr_id"]),
    )
    report = f"/v1/audience/integrations/{made['integration_id']}/report"
    operator.core.alter(f"GET {report}", lambda document: add_code(document, made["xr_id"]))
    project = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}"
    queries = (
        *(f"{project}/codes/{path}?xr_ids={made['xr_id']}" for path in ("issued", "revoke")),
        *(f"/search?q={made[name]}" for name in ("xr_id", "ticket_id", "integration_id")),
    )

    whole, shown = {}, ""
    for path in (*list_paths(made), *queries):
        page = await operator.get(path)
        if "text/html" in page.headers.get("content-type", "") and page.status < 500:
            shown += page.text
            if found := find_whole_ids(page.find("body")):
                whole[path] = found
    assert whole == {}
    hidden = {"invitation_id", "suspended_id"}
    expected = {value for name, value in made.items() if name not in hidden} | {unnamed["id"], pack["pack_id"]}
    assert {each for each in expected if each not in shown} == set()


async def test_no_message_after_a_form_shows_a_whole_id(operator: ConsoleClient, tenant: Tenant) -> None:
    key, integration = await tenant.make_key(), await tenant.make_integration()
    project = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}"
    suspended = f"/platform/organizations/{tenant.organization_id}"
    for path, fields in {
        f"{project}/integrations/{integration['id']}/core-key": {},
        f"{project}/api-keys/{key['id']}/revoke": {},
        f"{suspended}/suspension": {"reason": "Spam."},
        f"{suspended}/restoration": {},
    }.items():
        page = await operator.follow(await operator.submit(path, fields))
        assert page.find(".//p[@class='notice']") is not None, path
        assert find_whole_ids(page.find("body")) == [], path


def add_code(report: Any, xr_id: str) -> Any:
    """Return a report in which one Code was heard."""
    return {**report, "by_code": [{"xr_id": xr_id, "events": 1, "tokens": 1}]}
