"""Forms that a person had filled in when they had to sign in: kept sealed in the browser until they are back."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from soundmark.console.forms import Form
from soundmark.console.sealed_cookies import CookieJar

# What fits into two cookies: beside the session, proxies with their usual limits let no more pass. Every form that
# asks for a second factor is smaller. A larger form stays in the page that says why it was not sent; so does one of
# another page while a form is kept.
_BYTES_MAX: Final = 5_000
_LIFETIME: Final = timedelta(minutes=30)
_NAME: Final = "form"
_TOKEN: Final = "csrf_token"  # noqa: S105 - the name of a field; its value belongs to a session and is not kept


@dataclass(frozen=True, slots=True)
class _KeptForm:
    """A form with the path that it was sent to. `subject` is the person who typed it, None if that was unknown."""

    path: str
    subject: str | None
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class KeptForms:
    """The kept forms in the browsers' cookies, one in each browser."""

    jar: CookieJar

    def has_room(self, request: Request, form: Form, path: str, subject: str | None) -> bool:
        """Return whether a form is small enough to be kept, and takes the place of no form of another page."""
        kept = self._read(request)
        is_small = len(msgspec.json.encode(_make(form, path, subject))) <= _BYTES_MAX
        return is_small and (kept is None or kept.path == path)

    def keep(self, request: Request, response: Response, form: Form, path: str, subject: str | None) -> None:
        """Keep a form that there is room for, in place of the one before."""
        kept, lifetime_s = _make(form, path, subject), int(_LIFETIME.total_seconds())
        self.jar.write(response, _NAME, kept, replacing=request.cookies, max_age_s=lifetime_s)

    def find(self, request: Request, path: str, subject: str | None) -> Form | None:
        """Return the form that this person had sent to this path, or None."""
        kept = self._read(request)
        if kept is None or kept.path != path or kept.subject not in {None, subject}:
            return None
        return Form(kept.fields)

    def forget(self, request: Request, response: Response) -> None:
        """Remove the kept form from the browser."""
        self.jar.clear(response, _NAME, request.cookies)

    def _read(self, request: Request) -> _KeptForm | None:
        try:
            return msgspec.convert(self.jar.read(_NAME, request.cookies), _KeptForm)
        except msgspec.ValidationError:
            return None


def _make(form: Form, path: str, subject: str | None) -> _KeptForm:
    return _KeptForm(path, subject, tuple((name, value) for name, value in form if name != _TOKEN))
