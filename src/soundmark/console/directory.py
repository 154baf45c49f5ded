"""The names of organisations and projects, for headings and navigation."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from soundmark_sdk.client import AsyncClient
from soundmark_sdk.client.records import Organization, Page, Project

from soundmark.console.troubles import TooManyListed
from soundmark.kit.clock import Clock

_Tenant = TypeVar("_Tenant", Organization, Project)
# Long enough for the pages of one click, short enough that a renamed organisation is soon seen everywhere.
_KEPT_S: Final = 5.0
_ENTRIES_MAX: Final = 2_000
# Of a hundred each. Nobody but the operator belongs to nearly as many organisations.
_PAGES_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class _Entry:
    until_s: float
    organizations: dict[str, Organization]
    projects: dict[str, Project]


class Directory:
    """What each person's pages found lately, by that person's subject, so that nobody is shown another's list."""

    def __init__(self, clock: Clock) -> None:
        self._clock: Final = clock
        self._entries: Final[dict[str, _Entry]] = {}

    async def find_organization(self, subject: str, core: AsyncClient, organization_id: str) -> Organization | None:
        """Return an organisation that the person is a member of, or None.

        Raises: TooManyListed. soundmark_sdk.ClientFailure.
        """
        known = self._get_entry(subject).organizations
        return await _find(known, organization_id, lambda cursor: core.organizations.page(cursor=cursor))

    async def find_project(
        self, subject: str, core: AsyncClient, organization_id: str, project_id: str
    ) -> Project | None:
        """Return a project of an organisation, or None.

        Raises: TooManyListed. soundmark_sdk.ClientFailure.
        """
        known = self._get_entry(subject).projects
        found = await _find(
            known, project_id, lambda cursor: core.projects.page(organization_id=organization_id, cursor=cursor)
        )
        return found if found is not None and found.organization_id == organization_id else None

    def list_organizations(self, subject: str) -> list[Organization]:
        """Return the organisations that this person's pages found lately, without a call."""
        return [*self._get_entry(subject).organizations.values()]

    def list_projects(self, subject: str, organization_id: str) -> list[Project]:
        """Return the projects of an organisation that this person's pages found lately, without a call."""
        projects = self._get_entry(subject).projects.values()
        return [each for each in projects if each.organization_id == organization_id]

    def forget(self, subject: str) -> None:
        """Forget what this person's pages found, after something was renamed, created or deleted."""
        self._entries.pop(subject, None)

    def _get_entry(self, subject: str) -> _Entry:
        now_s = self._clock.monotonic_s()
        entry = self._entries.get(subject)
        if entry is None or entry.until_s < now_s:
            if len(self._entries) >= _ENTRIES_MAX:
                self._entries.clear()
            entry = self._entries[subject] = _Entry(now_s + _KEPT_S, {}, {})
        return entry


async def _find(
    known: dict[str, _Tenant], wanted: str, read: Callable[[str | None], Awaitable[Page[_Tenant]]]
) -> _Tenant | None:
    """Return the tenant with this id, and remember those of each page that was read for it."""
    cursor = None
    for _ in range(_PAGES_MAX):
        if wanted in known:
            break
        page = await read(cursor)
        known.update({each.id: each for each in page.data})
        if (cursor := page.next_cursor) is None:
            break
    else:
        if wanted not in known:
            raise TooManyListed
    return known.get(wanted)
