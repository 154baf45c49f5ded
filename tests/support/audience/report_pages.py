"""The report pages of a tenant."""

from urllib.parse import urlencode

from support.audience.measured_tenant import MeasuredTenant
from support.console.client import PageAnswer


def report_path(measured: MeasuredTenant, **query: str) -> str:
    """Return the path of the tenant's report with these filters."""
    tenant = measured.tenant
    path = (
        f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}"
        f"/integrations/{measured.integration['id']}/report"
    )
    return f"{path}?{urlencode(query)}" if query else path


def export_path(measured: MeasuredTenant, export: str, **query: str) -> str:
    """Return the path of an export of the tenant's report."""
    path, _, parameters = report_path(measured, **query).partition("?")
    return f"{path}/exports/{export}?{parameters}"


def rows_of(page: PageAnswer, dimension: str) -> list[list[str]]:
    """Return the cells of the table of a dimension, without its bars."""
    section = page.find(f".//section[@aria-labelledby='{dimension}']")
    return [
        ["".join(cell.itertext()).strip() for cell in row if cell.find("{*}svg") is None]
        for row in section.findall(".//tbody/tr")
    ]
