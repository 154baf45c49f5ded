"""The pages of platform administrators. Core refuses everybody else."""

from typing import Final

from soundmark_sdk.client import ApiProblem
from soundmark_sdk.client.records import ReleaseReadiness
from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.pages.platform import abuse, catalog, contracts, jobs, organizations, settings, status
from soundmark.console.routing import action, form_page, page
from soundmark.console.visit import Visit


async def show_readiness(visit: Visit) -> Response:
    """Show how far the receivers' SDK is from its stable release.

    A service that one operator runs on their machine has no release, so that the lack of evidence is no failure there.
    """
    readiness: ReleaseReadiness | None = None
    try:
        readiness = await visit.core.platform.release_readiness()
    except ApiProblem as problem:
        if problem.code != "release_readiness_unavailable" or visit.signed_in.kind != "operator":
            raise
    return visit.page("platform/readiness.html", readiness=readiness)


_CATALOG: Final = "/platform/catalog"
routes: Final[list[Route]] = [
    page("/platform", settings.show_settings),
    form_page("/platform/secrets/{name}", settings.show_secret, settings.put_secret, is_confidential=True),
    form_page("/platform/systems/{system}", settings.show_system, settings.put_system),
    action("/platform/systems/{system}/test", settings.test_system),
    action("/platform/configuration/{name}/removal", settings.remove_override),
    page(_CATALOG, catalog.show_catalog),
    action(f"{_CATALOG}/providers/{{provider}}", catalog.switch_provider),
    form_page(f"{_CATALOG}/plan", catalog.show_plan, catalog.put_plan),
    form_page(f"{_CATALOG}/offer", catalog.show_offer, catalog.put_offer),
    form_page(f"{_CATALOG}/contract", contracts.show_contract, contracts.put_contract),
    form_page(f"{_CATALOG}/customer", contracts.show_customer, contracts.put_customer),
    page(organizations.PATH, organizations.show_organizations),
    form_page(
        f"{organizations.PATH}/{{suspended_id}}/suspension", organizations.show_suspension, organizations.suspend
    ),
    action(f"{organizations.PATH}/{{suspended_id}}/restoration", organizations.restore),
    page(abuse.PATH, abuse.show_reports),
    action(f"{abuse.PATH}/{{report_id}}", abuse.put_report),
    page(status.PATH, status.show_status),
    page(jobs.PATH, jobs.show_jobs),
    action(f"{jobs.PATH}/{{job_id}}/retry", jobs.retry_job),
    page("/platform/readiness", show_readiness),
]
