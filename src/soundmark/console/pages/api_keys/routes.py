"""The pages of API keys."""

from collections.abc import Mapping
from typing import Final, cast, get_args

from soundmark_sdk.client.records import ApiKey, KeyScope
from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.forms import Form
from soundmark.console.routing import form_page
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit

_SCOPES: Final = get_args(KeyScope)
# What a key is for, and the scopes that it then needs.
_PRESETS: Final[Mapping[str, tuple[KeyScope, ...]]] = {
    "issuing": ("codes:read", "codes:write"),
    "reading": ("codes:read", "audience:read"),
    "measuring": ("audience:read", "audience:write"),
}


async def show_list(visit: Visit) -> Response:
    """Show the API keys of a project."""
    keys = await visit.core.api_keys.page(project_id=visit.project_id, cursor=visit.query("cursor"))
    return visit.page("api_keys/list.html", keys=keys, scopes=_SCOPES, presets=_PRESETS)


async def create(visit: Visit) -> Response:
    """Create a key, and show its secret once; the button of a preset ticks its scopes alone."""
    if visit.form.has("preset"):
        kept = [each for each in visit.form if each[0] not in {"preset", "scopes"}]
        scopes = _PRESETS.get(visit.form.text("preset"), ())
        visit.form = Form([*kept, *(("scopes", each) for each in scopes)])
        return await show_list(visit)
    key = await visit.core.api_keys.create(
        cast("list[KeyScope]", visit.form.texts("scopes")),  # Core refuses what is no scope.
        expires_in_days=visit.form.integer("expires_in_days"),
        name=visit.form.text("name") or None,
    )
    return visit.page("api_keys/secret.html", key=key, is_new=True)


async def show_name(visit: Visit) -> Response:
    """Show the name of a key, to be changed or removed."""
    return visit.page("api_keys/name.html", key=await _find_key(visit))


async def rename(visit: Visit) -> Response:
    """Rename a key; an empty name removes it."""
    found = await _find_key(visit)
    await visit.core.api_keys.rename(found.id, visit.form.text("name") or None)
    return visit.redirect(f"{visit.tenant_path}/api-keys", "api_keys.renamed")


async def show_rotation(visit: Visit) -> Response:
    """Show the key whose secret would be replaced, and ask for confirmation."""
    return visit.page("api_keys/confirm.html", act="rotate", key=await _find_key(visit))


async def rotate(visit: Visit) -> Response:
    """Replace the secret of a key, and show the new one once."""
    found = await _find_key(visit)
    key = await visit.core.api_keys.rotate_secret(found.id)
    return visit.page("api_keys/secret.html", key=key, is_new=False)


async def show_revocation(visit: Visit) -> Response:
    """Show the key that would be revoked, and ask for confirmation."""
    return visit.page("api_keys/confirm.html", act="revoke", key=await _find_key(visit))


async def revoke(visit: Visit) -> Response:
    """Revoke a key."""
    found = await _find_key(visit)
    await visit.core.api_keys.revoke(found.id)
    return visit.redirect(f"{visit.tenant_path}/api-keys", "api_keys.revoked")


async def _find_key(visit: Visit) -> ApiKey:
    """Return the key in the URL, if it belongs to the project there; Core's routes name no project.

    Raises: TenantUnknown. soundmark_sdk.ClientFailure.
    """
    wanted = visit.parameter("api_key_id")
    keys = visit.core.api_keys.list(project_id=visit.project_id)
    async for key in keys:
        if key.id == wanted:
            return key
    raise TenantUnknown


_ALL: Final = "/organizations/{organization_id}/projects/{project_id}/api-keys"
_ONE: Final = f"{_ALL}/{{api_key_id}}"
routes: Final[list[Route]] = [
    form_page(_ALL, show_list, create),
    form_page(f"{_ONE}/name", show_name, rename),
    form_page(f"{_ONE}/rotate", show_rotation, rotate),
    form_page(f"{_ONE}/revoke", show_revocation, revoke),
]
