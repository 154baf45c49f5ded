"""The QR code on a Code's page, which leads phones to the listening page."""

import re
from dataclasses import replace

from console.conftest import connect_to, console_settings
from support.console.client import CONSOLE_URL, ConsoleClient
from support.console.faulty_core import FaultyCore
from support.identity.oidc_issuer import CLIENT_ID
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_lifespan
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.console.app import assemble_app, make_console
from soundmark.console.qr_codes import draw_qr_code

PUBLIC_URL = "https://console.example.org"


async def test_the_qr_code_has_the_address_of_the_listening_page(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    code = await tenant.make_code()

    page = await operator.get(f"{codes}/{code['xr_id']}")

    address = f"{CONSOLE_URL}/listen"
    assert draw_qr_code(address) in page.html
    assert page.find(".//figure/div[@role='img']").get("aria-label") == f"QR code with the address {address}"
    assert page.find(".//figure//a").get("href") == address
    assert (await operator.other().get("/listen")).status == 200, "without signing in"
    assert "no phone can open the page" in page.text


async def test_a_public_console_says_nothing_of_this_machine(people: People, clock: FakeClock) -> None:
    tenant = await people.tenant_of("owner")
    code = await tenant.make_code()
    core = FaultyCore(connect_to(people.api.app))
    settings = console_settings(oidc_issuer=people.issuer.url, oidc_client_id=CLIENT_ID)
    console = make_console(settings, clock, core)
    public = replace(console, addresses=replace(console.addresses, console=PUBLIC_URL))
    app = assemble_app(public)
    async with running_lifespan(app):
        owner = ConsoleClient(app, public, core).sign_in_as(people, "owner", clock.now())
        path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/codes/{code['xr_id']}"
        page = await owner.get(path)

    assert draw_qr_code(f"{PUBLIC_URL}/listen") in page.html
    assert "no phone" not in page.text


async def test_a_code_without_a_sound_has_no_qr_code(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    code = await tenant.make_code()
    await tenant.revoke(code["xr_id"])

    page = await operator.get(f"{codes}/{code['xr_id']}")

    assert "was revoked" in page.text
    assert page.find_all(".//figure[@class='qr-code']") == []


def test_it_is_black_on_white_with_room_around_it_and_without_what_the_policy_forbids() -> None:
    svg = draw_qr_code(f"{PUBLIC_URL}/listen")

    assert set(re.findall(r"<(\w+)", svg)) == {"svg", "path"}
    assert set(re.findall(r"([\w-]+)=", svg)) == {"viewBox", "fill", "stroke", "d"}
    assert re.findall(r'(fill|stroke)="(\S+)"', svg) == [("fill", "#fff"), ("stroke", "#000")]
    assert 'viewBox="0 0 37 37"' in svg, "29 modules, and four on each side"
    assert 'stroke="#000" d="M4 4.5h7' in svg, "a corner begins after four"


def test_another_address_is_another_qr_code() -> None:
    assert draw_qr_code(f"{PUBLIC_URL}/listen") != draw_qr_code(f"{CONSOLE_URL}/listen")
