"""The search: pages, names and events by a part of them, and Codes by the beginning of their address."""

from support.billing.offers import LOCAL_OFFER, make_local_offer
from support.console.client import ConsoleClient
from support.console.search_pages import found_in, search_path
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_second_project

HOSTILE = "<b>Radio</b> \"'& {name}"


async def test_names_are_found_by_a_part_of_them(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign("Summer festival")
    await tenant.make_key(name="Festival playout")
    await tenant.make_key()
    integration = await tenant.make_integration(name="Festival site")
    invitation = await tenant.make_invitation(email="festival@example.org")
    other = await make_second_project(tenant)

    found = found_in(await operator.get(search_path(tenant, "FESTIVAL")))

    assert {*found} == {"Summer festival", "Festival playout", "Festival site", "festival@example.org"}
    assert found["Festival site"].endswith(f"/integrations/{integration['id']}")
    assert found["festival@example.org"].endswith(f"/members/invitations#{invitation['id']}")
    assert found["Summer festival"].endswith(f"/campaigns/{campaign['id']}")
    elsewhere = found_in(await operator.get(search_path(other, "festival")))
    assert [*elsewhere] == ["festival@example.org"], "it looks into the organisation and the project at hand"


async def test_a_code_is_found_by_the_beginning_of_its_address(operator: ConsoleClient, tenant: Tenant) -> None:
    code = await tenant.make_code(
        intent={"type": "link", "action": "open", "resource": {"url": "https://example.org/tonight"}}
    )

    for text in ("example.org/to", "https://example.org/tonight", "https:/"):
        found = found_in(await operator.get(search_path(tenant, text)))
        assert found["https://example.org/tonight"].endswith(code["xr_id"]), text


async def test_pages_are_found_by_their_names_as_far_as_the_role_goes(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("alice")
    await people.member(tenant, rival, "bob", "member")
    await tenant.make_key(name="Audience app")
    for person, names in (("alice", {"Audience", "Audience app"}), ("bob", {"Audience"})):
        visitors.sign_in_as(people, person, clock.now())
        found = found_in(await visitors.get(search_path(tenant, "audience")))
        assert {name for name, path in found.items() if "event_type" not in path} == names, person


async def test_pages_of_one_name_say_what_they_belong_to(operator: ConsoleClient, tenant: Tenant) -> None:
    organization = f"/organizations/{tenant.organization_id}"

    platform = {"Settings (Platform)": "/platform"}
    assert found_in(await operator.get(search_path(tenant, "settings"))) == {
        "Settings (Project)": f"{organization}/projects/{tenant.project_id}/settings",
        "Settings (Organisation)": f"{organization}/settings",
        **platform,
    }
    outside = await operator.get(f"/search?organization_id={tenant.organization_id}&q=settings")
    assert found_in(outside) == {"Settings": f"{organization}/settings", **platform}


async def test_the_pages_and_the_catalogue_of_the_platform_are_found_by_administrators(
    operator: ConsoleClient,
    visitors: ConsoleClient,
    people: People,
    rival: Rival,
    clock: FakeClock,
    tenant: Tenant,
) -> None:
    await make_local_offer(rival)
    tabs = (await operator.get("/platform")).find_all(".//nav[@class='tabs']//a")
    expected = {f"{each.text} (Platform)": str(each.get("href")) for each in tabs}
    found = found_in(await operator.get(search_path(tenant, "platform")))
    assert found == {**expected, "Failed jobs (Platform)": "/platform/jobs"}
    assert len(found) > 6

    for text in ("studio", LOCAL_OFFER):
        paths = found_in(await operator.get(search_path(tenant, text))).values()
        assert f"/platform/catalog/offer?offer_id={LOCAL_OFFER}" in paths, text
    visitors.sign_in_as(people, "alice", clock.now())
    for text in ("platform", "studio"):
        assert found_in(await visitors.get(f"/search?q={text}")) == {}, text


async def test_an_event_of_webhooks_leads_to_the_form_of_an_endpoint_for_it(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("alice")
    await people.member(tenant, rival, "bob", "member")
    visitors.sign_in_as(people, "alice", clock.now())

    for text in ("code.revoked", "code REVOKED"):
        [path] = found_in(await visitors.get(search_path(tenant, text))).values()
        form = await visitors.get(path)
        assert form.value("which") == "chosen", text
        ticked = [each.get("value") for each in form.find_all(".//input[@name='event_types'][@checked]")]
        assert ticked == ["code.revoked"], text
    unknown = await visitors.get(f"/organizations/{tenant.organization_id}/webhooks/new?event_type=moon.landed")
    assert (unknown.status, unknown.value("which")) == (200, "all")
    visitors.sign_in_as(people, "bob", clock.now())
    assert found_in(await visitors.get(search_path(tenant, "code.revoked"))) == {}


async def test_findings_are_limited_and_are_text(operator: ConsoleClient, tenant: Tenant) -> None:
    for number in range(10):
        await tenant.make_campaign(f"{HOSTILE} {number}")

    page = await operator.get(search_path(tenant, "radio"))

    assert len([name for name in found_in(page) if name.startswith(HOSTILE)]) == 8
    assert page.find_all(".//main//b") == []
    echoed = await operator.get(search_path(tenant, "%22%3E%3Cscript%3E"))
    assert echoed.value("q") == '"><script>'


async def test_a_search_without_core_says_so(operator: ConsoleClient, tenant: Tenant) -> None:
    operator.core.go_down()

    page = await operator.get(search_path(tenant, "x"))

    assert (page.status, page.trouble) == (503, "core_unreachable")


async def test_keys_and_codes_of_every_project_are_found_from_a_page_of_the_organization(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    other = await make_second_project(tenant)
    code, key = await other.make_code(), await other.make_key(name="Example playout")
    project = f"/organizations/{tenant.organization_id}/projects/{other.project_id}"

    found = found_in(await operator.get(f"/search?organization_id={tenant.organization_id}&q=example"))

    assert found == {
        code["intent"]["resource"]["url"]: f"{project}/codes/{code['xr_id']}",
        "Example playout": f"{project}/api-keys#{key['id']}",
    }
