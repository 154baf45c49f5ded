"""A tenant that is suspended or being deleted: its pages say so, and offer nothing that Core refuses for it."""

from typing import Final

import pytest
from support.api.core_client import Api
from support.billing.offers import make_card_offer
from support.console.client import ConsoleClient, PageAnswer
from support.console.page_paths import list_paths, make_one_of_each
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.suspension import suspend
from support.tenancy.tenant import Tenant

_REFUSALS: Final = {"organization_suspended", "resource_deletion_in_progress"}
_MARKS: Final = {
    "closing": "UPDATE organizations SET deletion_requested_at = created_at",
    "project closing": "UPDATE projects SET deletion_requested_at = created_at",
}
_BANNERS: Final = {
    "suspended": "This organisation is suspended",
    "closing": "The deletion of this organisation began on",
    "project closing": "The deletion of this project began on",
}
# The forms that an active tenant has and this one lacks, by their paths in the organisation or the project.
_OF_PROJECT: Final = {"api-keys", "campaigns", "codes/issue", "integrations"}
_OF_ORGANIZATION: Final = {"projects", "members/invitations", "billing/offers"}
_OF_INTEGRATION: Final = {f"integrations/{{integration_id}}{each}" for each in ("", "/secret", "/revoke", "/core-key")}
_FORM_PAGES: Final = {"codes/issue", "webhooks/new", "tickets/new"}
_WITHHELD: Final = {
    "suspended": _OF_PROJECT | _OF_ORGANIZATION,
    # Not the form that deletes the project, but the one that resumes the deletion of the organisation.
    "closing": _OF_PROJECT
    | _OF_ORGANIZATION
    | _OF_INTEGRATION
    | {"webhooks/new", "tickets/new", "tickets/{ticket_id}", "delete"},
    "project closing": _OF_PROJECT | _OF_INTEGRATION,
}


@pytest.fixture
async def ids(operator: ConsoleClient, tenant: Tenant, rival: Rival) -> dict[str, str]:
    """One of everything that has a page, and an offer for sale."""
    await make_card_offer(rival)
    return await make_one_of_each(operator, tenant)


@pytest.mark.parametrize("state", _BANNERS)
async def test_a_form_is_offered_only_where_core_takes_it(
    operator: ConsoleClient, api: Api, rival: Rival, clock: FakeClock, ids: dict[str, str], state: str
) -> None:
    before = await _open_pages(operator, ids)

    await _bring_into(state, api, rival, ids["organization_id"])
    clock.advance(seconds=6)  # The console reads the tenant anew.
    after = await _open_pages(operator, ids)

    assert {path for path, page in after.items() if page.status != before[path].status} == set()
    offered = _list_forms(after)
    withheld = {_name(path, ids) for path in _list_forms(before).keys() - offered.keys()}
    assert withheld == _WITHHELD[state]
    concerned = {path: page for path, page in after.items() if state != "project closing" or "/projects/" in path}
    assert {path for path, page in concerned.items() if _BANNERS[state] not in page.text} == set()
    links = {_name(str(each.get("href")), ids) for page in concerned.values() for each in page.find_all(".//main//a")}
    assert links & withheld & _FORM_PAGES == set()
    answers = {path: await operator.submit(path, fields) for path, fields in offered.items()}
    assert {path for path, each in answers.items() if each.status >= 400 and each.trouble in _REFUSALS} == set()


async def _bring_into(state: str, api: Api, rival: Rival, organization_id: str) -> None:
    if state in _MARKS:
        await rival.run(_MARKS[state])
    else:
        assert (await suspend(api, organization_id)).status == 200


async def _open_pages(operator: ConsoleClient, ids: dict[str, str]) -> dict[str, PageAnswer]:
    """Open each page of the organisation that is no download."""
    paths = [path for path in list_paths(ids) if path.startswith(f"/organizations/{ids['organization_id']}")]
    pages = {path: await operator.get(path) for path in paths}
    return {path: page for path, page in pages.items() if page.headers["content-type"].startswith("text/html")}


def _list_forms(pages: dict[str, PageAnswer]) -> dict[str, dict[str, str]]:
    """Return what each form of the pages would send, by its path; what has no value yet is a word."""
    return {
        form.get("action") or path: {
            str(each.get("name")): each.get("value") or "word"
            for each in form.iter("input")
            if each.get("name") and (each.get("type") not in {"radio", "checkbox"} or each.get("checked") is not None)
        }
        for path, page in pages.items()
        for form in page.find_all(".//main//form[@method='post']")
    }


def _name(path: str, ids: dict[str, str]) -> str:
    """Return a path below the organisation or the project, with the names of ids in place of them."""
    for name, value in ids.items():
        path = path.replace(value, f"{{{name}}}")
    path = path.partition("?")[0].removeprefix("/organizations/{organization_id}/")
    return path.removeprefix("projects/{project_id}/")
