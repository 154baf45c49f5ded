"""One request to a page."""

import asyncio
import hmac
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup, escape
from soundmark_sdk.client import AsyncClient
from soundmark_sdk.client.records import Organization, Project
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from soundmark.console import documentation
from soundmark.console import language as languages
from soundmark.console.call_deadline import CallDeadline
from soundmark.console.context import Console
from soundmark.console.forms import Form, write_instant
from soundmark.console.frame import make_frame
from soundmark.console.id_paths import copy_id, mark_id, shorten_id
from soundmark.console.language import Language
from soundmark.console.navigation import PLATFORM_PAGES, list_areas, offers_platform
from soundmark.console.session import Session
from soundmark.console.static_files import locate_static
from soundmark.console.troubles import RoleRefused, TenantUnknown, Trouble


class _Wording(Extension):
    """Writes the messages that take no values into the templates: a page of a list would look up hundreds of them."""

    _CALL: Final = re.compile(r"""(?<![\w.])t\((["'])([^"']+)\1\)""")

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return the template with the text of each message in place of its key."""
        _ = name, filename
        return self._CALL.sub(self._write_text, source)

    def _write_text(self, call: re.Match[str]) -> str:
        language: Any = self.environment.globals["language"]
        text: str = language.say(call[2])
        return '"' + text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") + '"'


@cache
def get_templates(language: Language) -> Environment:
    """Return the templates in one language."""
    templates = Environment(
        loader=PackageLoader(__package__),
        extensions=[_Wording],
        autoescape=True,
        undefined=StrictUndefined,
        # The files of an installation do not change while it runs; looking would cost every page a tenth of a
        # millisecond.
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {
        "has_guide": lambda: documentation.find_site() is not None,
        "isolate": languages.isolate,
        "language": language,
        "copy_id": copy_id,
        "mark_id": mark_id,
        "mark_status": _mark_status,
        "shorten_id": shorten_id,
        "platform_tabs": PLATFORM_PAGES,
        "static": locate_static,
        "write_instant": write_instant,
        "t": language.say,
        "isolated": language.isolate,
        "moment": language.mark_moment,
    }
    return templates


def _mark_status(value: str, text: str) -> Markup:
    """Return a status in its colour. A page of a list has a hundred, for which a macro takes longer."""
    return Markup(f'<span class="status status-{escape(value)}">{escape(text)}</span>')  # noqa: S704 - escaped


def render(template: str, status: int, language: Language, **context: Any) -> Response:
    """Return a page that no cache may keep, not even the browser's."""
    html = get_templates(language).get_template(template).render(context)
    # HTML has no NUL, which an address or a form may hold; Core refuses it.
    return HTMLResponse(html.replace("\0", "\N{REPLACEMENT CHARACTER}"), status, {"cache-control": "no-store"})


def _hide_token(session: Session | None) -> Markup:
    """Return the field that every form of a session has: it proves that one of its pages sent the form."""
    if session is None:
        return Markup()
    return Markup('<input type="hidden" name="csrf_token" value="{}">').format(session.csrf_token)


_NOTICE: Final = "notice"
_SEE_OTHER: Final = 303
_MANAGING_ROLES: Final = frozenset({"owner", "admin"})


@dataclass(frozen=True, slots=True)
class _Notice:
    """A message for the next page: its key, the values to fill in, and another sentence after it."""

    key: str
    values: Mapping[str, str | int]
    after: str = ""


@dataclass(slots=True)
class Visit:
    """One request: who sent it, what it asks for, and the ways to answer it.

    `form` is what was typed: empty until a form was sent. `repeatable_form` is as much of it as a page or a cookie may
    repeat: nothing of a form that `is_form_confidential`. `trouble` is why the form is shown again. `return_path` is
    where the person comes back to after signing in, if that is another page, because this one is a download.
    """

    console: Console
    request: Request
    session: Session | None
    language: Language
    form: Form = field(default_factory=Form)
    trouble: Trouble | None = None
    organization: Organization | None = None
    project: Project | None = None
    return_path: str | None = None
    is_form_confidential: bool = False
    has_restored_form: bool = False
    renewed_session: Session | None = None
    _core: AsyncClient | None = None
    _deadline: CallDeadline | None = None

    @property
    def core(self) -> AsyncClient:
        """Core's API with this person's credential, or with none on a public page, for the tenant in the URL."""
        if self._core is None:
            self._core = self._connect()
        return self._core

    @property
    def deadline(self) -> CallDeadline:
        """The deadline of all calls to Core, which starts before the first of them."""
        if self._deadline is None:
            self._deadline = self.console.core.start_deadline()
        return self._deadline

    @property
    def repeatable_form(self) -> Form:
        """What was typed, for pages and cookies."""
        return Form() if self.is_form_confidential else self.form

    @property
    def signed_in(self) -> Session:
        """The session of a page that only people who are signed in see."""
        assert self.session is not None, "only public pages are shown without a session"
        return self.session

    @property
    def organization_id(self) -> str:
        """The organisation in the URL."""
        return str(self.request.path_params["organization_id"])

    @property
    def project_id(self) -> str:
        """The project in the URL."""
        return str(self.request.path_params["project_id"])

    @property
    def tenant_path(self) -> str:
        """The path of the project in the URL, or else of the organisation."""
        path = f"/organizations/{self.organization_id}"
        return f"{path}/projects/{self.project_id}" if "project_id" in self.request.path_params else path

    @property
    def may_manage(self) -> bool:
        """Whether the person's role lets them change what belongs to the organisation in the URL."""
        return self.organization is not None and self.organization.role in _MANAGING_ROLES

    @property
    def is_closing(self) -> bool:
        """Whether the organisation or the project in the URL is being deleted."""
        tenants = (self.organization, self.project)
        return any(each is not None and each.deletion_requested_at is not None for each in tenants)

    @property
    def is_active(self) -> bool:
        """Whether the organisation and project in the URL can be added to: they are neither suspended nor closing."""
        return not self.is_closing and (self.organization is None or self.organization.suspended_at is None)

    @property
    def may_add(self) -> bool:
        """Whether the person may add to the tenant in the URL as it is now."""
        return self.may_manage and self.is_active

    @property
    def areas(self) -> list[str]:
        """The areas of the organisation or project in the URL that the person's role may read."""
        return [] if self.organization is None else list_areas(self.organization.role, in_project=bool(self.project))

    @property
    def offers_platform(self) -> bool:
        """Whether the person may administer the platform, as far as the console can tell."""
        return self.session is not None and offers_platform(self.session)

    def require_managing_role(self) -> None:
        """Refuse to show an empty form that Core would refuse; what somebody has typed already is shown to them.

        Raises: RoleRefused.
        """
        if not self.may_manage and not self.form:
            raise RoleRefused

    def parameter(self, name: str) -> str:
        """Return a part of the path that the route names.

        Raises: TenantUnknown for one that would change the path of a call.
        """
        value = str(self.request.path_params[name])
        if value in {".", ".."}:
            raise TenantUnknown
        return value

    def query(self, name: str) -> str | None:
        """Return a parameter of the URL, or None if it is absent or empty."""
        return self.request.query_params.get(name, "").strip() or None

    def say(self, key: str, **values: object) -> str:
        """Return a message in the person's language."""
        return self.language.say(key, **values)

    async def load_tenant(self) -> None:
        """Find the organisation and project in the URL, for the heading and navigation.

        Raises: TenantUnknown. soundmark_sdk.ClientFailure.
        """
        parameters, subject = self.request.path_params, self.signed_in.subject
        if "organization_id" not in parameters:
            return
        directory = self.console.directory
        finding = directory.find_organization(subject, self.core, self.organization_id)
        if "project_id" in parameters:
            finding_project = directory.find_project(subject, self.core, self.organization_id, self.project_id)
            self.organization, self.project = await asyncio.gather(finding, finding_project)
        else:
            self.organization = await finding
        if self.organization is None or (self.project is None and "project_id" in parameters):
            raise TenantUnknown

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page. A page that shows a trouble has its status."""
        frame = make_frame(
            self.console.directory,
            self.session,
            self.request.url.path,
            organization=self.organization,
            project=self.project,
        )
        response = render(
            template,
            self.trouble.status if self.trouble and status == 200 else status,  # noqa: PLR2004 - the default
            self.language,
            visit=self,
            frame=frame,
            session=self.session,
            hidden_token=_hide_token(self.session),
            languages=languages.NAMES,
            form=self.repeatable_form,
            trouble=self.trouble,
            organization=self.organization,
            project=self.project,
            notice=self._read_notice(),
            **values,
        )
        if self.trouble is not None and self.trouble.retry_after_s is not None:
            response.headers["retry-after"] = str(math.ceil(self.trouble.retry_after_s))
        self.console.jar.clear(response, _NOTICE, self.request.cookies)
        return response

    def redirect(self, path: str, notice: str | None = None, *, after: str = "", **values: str | int) -> Response:
        """Return a redirect after a form; the next page shows the message `notice` once, and a sentence `after` it."""
        response = RedirectResponse(path, _SEE_OTHER)
        if notice is not None:
            self.console.jar.write(response, _NOTICE, _Notice(notice, values, after), max_age_s=60)
        return response

    def here(self, **changed: str | None) -> str:
        """Return this page's URL with some parameters changed, or left out where None."""
        # A name may be there several times, such as the Codes of a selection.
        unchanged = [each for each in self.request.query_params.multi_items() if each[0] not in changed]
        kept = [(name, value) for name, value in (*unchanged, *changed.items()) if value]
        # Two slashes at the beginning would lead to another host.
        path = "/" + self.request.url.path.lstrip("/")
        return path + (f"?{urlencode(kept)}" if kept else "")

    def restore_form(self) -> None:
        """Take what was typed into the form of this page before the person had to sign in."""
        subject = None if self.session is None else self.session.subject
        kept = self.console.kept_forms.find(self.request, self.here(), subject)
        if kept is not None and self.session is not None:
            self.form, self.has_restored_form = kept, True

    def use_session(self, session: Session) -> None:
        """Go on with other tokens, which the browser gets with the response."""
        if session is not self.session:
            self.session = self.renewed_session = session

    def is_own_form(self) -> bool:
        """Return whether the form was sent by a page of ours that this session was shown."""
        return self.session is None or hmac.compare_digest(
            self.form.text("csrf_token").encode(), self.session.csrf_token.encode()
        )

    def _read_notice(self) -> Markup | None:
        """Return the message for this page; None without one, or for one that only another release knows."""
        try:
            notice = msgspec.convert(self.console.jar.read(_NOTICE, self.request.cookies), _Notice)
            return self.language.isolate(notice.key, **notice.values) + f" {notice.after}".rstrip()
        except (msgspec.ValidationError, KeyError):
            return None

    def _connect(self) -> AsyncClient:
        core, token, parameters = self.console.core, self.console.operator_token, self.request.path_params
        tenant = parameters.get("organization_id"), parameters.get("project_id")
        if self.session is None:
            return core.client(self.deadline, None, tenant)
        if self.session.kind == "operator":
            return core.client(self.deadline, None if token is None else token.reveal(), tenant)
        return core.client(self.deadline, lambda: self.signed_in.access_token or "", tenant, self._renew)

    async def _renew(self, refused: str) -> str | None:
        """Return the token to use in place of one that Core refused, or None without a new one."""
        session, sign_in = self.signed_in, self.console.sign_in
        if session.access_token == refused:
            renewed = None if sign_in is None else await sign_in.renewal.replace(session)
            if renewed is None:
                return None
            self.use_session(renewed)
        return self.signed_in.access_token
