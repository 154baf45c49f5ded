"""The pages of projects."""

from typing import Final

from starlette.responses import Response
from starlette.routing import Route

from soundmark.console import leaving
from soundmark.console.downloads import answer_download
from soundmark.console.pages.projects import allowed_hosts
from soundmark.console.pages.projects.home import show_home
from soundmark.console.routing import form_page, page
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit


async def show_list(visit: Visit) -> Response:
    """Show the projects of an organisation."""
    projects = await visit.core.projects.page(cursor=visit.query("cursor"))
    return visit.page("projects/list.html", projects=projects)


async def create(visit: Visit) -> Response:
    """Create a project."""
    project = await visit.core.projects.create(visit.form.text("name"))
    visit.console.directory.forget(visit.signed_in.subject)
    return visit.redirect(f"{visit.tenant_path}/projects/{project.id}", "projects.created", name=project.name)


async def show_one(visit: Visit) -> Response:
    """Show the home page, or a form for its name that was sent there, as before the settings had a page."""
    return await (show_settings(visit) if visit.form else show_home(visit))


async def show_settings(visit: Visit) -> Response:
    """Show the name and id of a project, and the ways to leave it.

    Raises: TenantUnknown for a form that was sent while Core could not name the project.
    """
    if visit.project is None:
        raise TenantUnknown
    return visit.page("projects/settings.html")


async def rename(visit: Visit) -> Response:
    """Rename a project."""
    await visit.core.projects.rename(visit.form.text("name"))
    visit.console.directory.forget(visit.signed_in.subject)
    return visit.redirect(f"{visit.tenant_path}/settings", "projects.renamed")


async def export(visit: Visit) -> Response:
    """Download the archive of a project."""
    return await answer_download(
        visit,
        visit.core.projects.export,
        f"{visit.project_id}.svc-project-archive-v1.json",
        "application/json",
    )


async def show_deletion(visit: Visit) -> Response:
    """Show what the deletion of a project would delete, and ask for its confirmation."""
    return await leaving.show_deletion(visit, visit.core.projects, visit.project)


async def delete(visit: Visit) -> Response:
    """Delete a project for good, and show the certificate."""
    return await leaving.delete_tenant(visit, visit.core.projects)


_ALL: Final = "/organizations/{organization_id}/projects"
_ONE: Final = f"{_ALL}/{{project_id}}"
routes: Final[list[Route]] = [
    form_page(_ALL, show_list, create),
    form_page(_ONE, show_one, rename),
    form_page(f"{_ONE}/settings", show_settings, rename),
    form_page(f"{_ONE}/allowed-hosts", allowed_hosts.show, allowed_hosts.save),
    page(f"{_ONE}/export", export, offered_by=f"{_ONE}/settings"),
    form_page(f"{_ONE}/delete", show_deletion, delete),
]
