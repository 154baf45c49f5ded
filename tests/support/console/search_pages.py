"""The search page, and what is found on it."""

from support.console.client import PageAnswer
from support.tenancy.tenant import Tenant


def search_path(tenant: Tenant, text: str) -> str:
    return f"/search?organization_id={tenant.organization_id}&project_id={tenant.project_id}&q={text}"


def found_in(page: PageAnswer) -> dict[str, str]:
    """Return the paths that were found, by their names."""
    links = page.find_all(".//ul[@class='found']//a")
    assert page.status == 200, page.text
    return {"".join(each[-1].itertext()): str(each.get("href")) for each in links}
