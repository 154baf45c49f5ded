"""Organisations and reports of abuse, for administrators of the platform."""

from support.api.core_client import Api
from support.console.client import ConsoleClient, PageAnswer
from support.tenancy.tenant import Tenant

PATH, REPORTS = "/platform/organizations", "/platform/abuse-reports"
HOSTILE = "<script>alert(1)</script>"


def read_names(page: PageAnswer, tag: str) -> list[str]:
    """Return what the controls of a table are called where somebody hears them without their rows."""
    found = page.find_all(f".//tbody//{tag}")
    return [each.get("aria-label") or " ".join("".join(each.itertext()).split()) for each in found]


async def standing(api: Api, organization_id: str) -> tuple[bool, str | None]:
    found = (await api.get("/v1/platform/organizations", params={"search": organization_id})).json["data"][0]
    return found["suspended_at"] is not None, found["suspension_reason"]


async def test_an_organisation_is_found_suspended_and_restored(
    operator: ConsoleClient, tenant: Tenant, api: Api
) -> None:
    organization_id = tenant.organization_id
    form = await operator.get(f"{PATH}/{organization_id}/suspension")
    assert form.status == 200
    await operator.submit(f"{PATH}/{organization_id}/suspension", {"reason": f" {HOSTILE} "})
    assert await standing(api, organization_id) == (True, HOSTILE)
    for query in (f"search={organization_id}", "search=radio&status=suspended"):
        page = await operator.get(f"{PATH}?{query}")
        assert (page.status, HOSTILE in page.text, "suspended" in page.text) == (200, True, True)
        assert organization_id in page.text
        assert read_names(page, "a") == ["Change the reason Radio Nordlicht"]
        assert read_names(page, "button") == ["Restore Radio Nordlicht"]
    assert organization_id not in (await operator.get(f"{PATH}?status=active")).text
    assert "No organisations match." in (await operator.get(f"{PATH}?search=nobody")).text
    await operator.submit(f"{PATH}/{organization_id}/restoration", {})
    assert await standing(api, organization_id) == (False, None)


async def test_a_suspension_without_a_reason_is_shown_again(operator: ConsoleClient, tenant: Tenant, api: Api) -> None:
    answer = await operator.submit(f"{PATH}/{tenant.organization_id}/suspension", {"reason": "  "})
    assert answer.status == 422
    assert await standing(api, tenant.organization_id) == (False, None)


async def test_an_unknown_organisation_has_no_form(operator: ConsoleClient) -> None:
    assert (await operator.get(f"{PATH}/org_{'A' * 22}/suspension")).status == 404


async def test_a_report_is_read_closed_and_reopened(operator: ConsoleClient, tenant: Tenant, api: Api) -> None:
    code = await tenant.make_code()
    body = {"token": code["broadcast_token"], "category": "malware", "text": HOSTILE, "contact": "me@example.org"}
    assert (await api.other(token=None, peer="198.21.0.1").post("/v1/abuse-reports", json=body)).status == 202
    (report,) = (await api.get("/v1/platform/abuse-reports")).json["data"]
    page = await operator.get(REPORTS)
    assert (page.status, code["xr_id"] in page.text, "me@example.org" in page.text) == (200, True, True)
    assert HOSTILE in page.text, "as a text, and no part of the page"
    assert read_names(page, "label") == [f"Note {code['xr_id']}"]
    assert read_names(page, "button") == [f"Close {code['xr_id']}"]
    await operator.submit(f"{REPORTS}/{report['id']}", {"status": "closed", "note": "Suspended."})
    assert code["xr_id"] not in (await operator.get(REPORTS)).text
    closed = await operator.get(f"{REPORTS}?status=closed")
    assert code["xr_id"] in closed.text
    assert [each.get("value") for each in closed.find_all(".//input[@name='note']")] == ["Suspended."]
    await operator.submit(f"{REPORTS}/{report['id']}", {"status": "open", "note": ""})
    (reopened,) = (await api.get("/v1/platform/abuse-reports")).json["data"]
    assert (reopened["status"], reopened["note"]) == ("open", None)
