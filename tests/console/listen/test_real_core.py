"""The whole way: a Core issues a Code, a browser of another origin hears it, and its revocation counts at once."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import httpx2
import pytest
from playwright.async_api import expect
from support.api.core_settings import OPERATOR_TOKEN, core_settings
from support.browser.chromium import Browsing
from support.processes.running_apps import served_in_thread
from support.tenancy.tenant import INTENT

from soundmark.core.app import create_app
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.postgres.migrations import migrate

pytestmark = pytest.mark.xdist_group("browser")


async def test_a_code_of_a_real_core_is_heard_until_it_is_revoked(
    browsing: Browsing, hear: Any, cluster: RunningCluster, serve_console: Callable[..., AbstractContextManager[str]]
) -> None:
    url = cluster.create_role_and_database("core_of_listeners")
    migrate(url, "soundmark.core")
    with served_in_thread(create_app(core_settings(url))) as core_url, serve_console(core_url) as console_url:
        headers = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
        with httpx2.Client(base_url=core_url, headers=headers, trust_env=False) as operator:
            code = issue(operator)
            page = await browsing.open_page()
            heard = await hear(page, f"{console_url}/listen", code["broadcast_token"])
            assert await heard.get_attribute("data-outcome") == "verified"
            await expect(heard.locator("[data-slot=xr_id]")).to_have_text(code["xr_id"])
            await expect(heard.locator("[data-slot=action]")).to_have_text(INTENT["action"])
            await heard.locator("summary").click()
            await heard.locator("select").select_option("impersonation")
            await heard.locator("textarea").fill("This is not the radio.")
            await heard.locator("form button").click()
            await expect(heard.locator("[data-slot=reporting]")).to_have_attribute("data-state", "sent")
            (report,) = operator.get("/v1/platform/abuse-reports").raise_for_status().json()["data"]
            written = (report["xr_id"], report["category"], report["text"], report["contact"])
            assert written == (code["xr_id"], "impersonation", "This is not the radio.", None)
            organization = {"organization_id": code["organization_id"]}
            operator.post(f"/v1/codes/{code['xr_id']}/revoke", params=organization).raise_for_status()
        browsing.tolerate("status of 404")
        heard = await hear(page, f"{console_url}/listen", code["broadcast_token"])
        assert await heard.get_attribute("data-outcome") == "codeUnavailable"


def issue(operator: httpx2.Client) -> Any:
    organization_id = make(operator, "/v1/organizations", name="Radio Nordlicht")["id"]
    tenant = {"organization_id": organization_id}
    project_id = make(operator, "/v1/projects", **tenant, name="Morning show")["id"]
    request = {"project_id": project_id, "issuer": "Radio", "expires_at": "2999-01-01T00:00:00.000Z", "intent": INTENT}
    return {**make(operator, "/v1/codes", **tenant, **request), **tenant}


def make(client: httpx2.Client, path: str, **body: Any) -> Any:
    return client.post(path, json=body).raise_for_status().json()
