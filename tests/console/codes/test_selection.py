"""What is done with a selection of Codes: their sounds as one file, and their revocation."""

import io
import zipfile

import pytest
from support.console.client import CSRF_TOKEN, ConsoleClient, PageAnswer
from support.tenancy.tenant import Tenant, make_second_project

MADE_UP = [f"xr_{number:022d}" for number in range(101)]


def read_ids(page: PageAnswer) -> list[str]:
    return ["".join(each.itertext()) for each in page.find_all(".//ul[@class='ids']/li//a")]


async def _statuses(tenant: Tenant) -> dict[str, str]:
    return {code["xr_id"]: code["status"] for code in await tenant.list_codes()}


async def test_the_sounds_of_a_selection_are_one_file(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    chosen = [(await tenant.make_code())["xr_id"] for _ in range(2)]
    await tenant.make_code()

    answer = await operator.get(f"{codes}/bundle", params={"xr_ids": chosen, "protocol": "5"})

    assert answer.headers["content-disposition"] == f'attachment; filename="{tenant.project_id}.codes.zip"'
    with zipfile.ZipFile(io.BytesIO(answer.response.content)) as bundle:
        assert bundle.namelist() == [f"{xr_id}.wav" for xr_id in chosen]
        assert {each.file_size for each in bundle.infolist()} == {145_452}, "the size of protocol 5"


async def test_a_selection_is_revoked_after_a_page_that_lists_it(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    chosen = [(await tenant.make_code())["xr_id"] for _ in range(2)]
    kept = (await tenant.make_code())["xr_id"]

    asked = await operator.get(f"{codes}/revoke", params={"xr_ids": chosen})
    assert "2 Codes will be revoked." in asked.text
    assert read_ids(asked) == chosen
    assert set((await _statuses(tenant)).values()) == {"active"}
    sent = [str(each.get("value")) for each in asked.find_all(".//main//input[@name='xr_ids']")]
    answer = await operator.submit(f"{codes}/revoke", {"xr_ids": sent})

    assert answer.location == f"{codes}#revoked"
    assert "2 Codes were revoked. " in (await operator.follow(answer)).text
    assert await _statuses(tenant) == {chosen[0]: "revoked", chosen[1]: "revoked", kept: "active"}


async def test_the_page_before_a_revocation_says_what_each_code_does(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    resources = [{"url": f"https://example.org/{each}", "title": f"The {each}"} for each in ("song", "film")]
    intents = [{"type": "link", "action": "open", "resource": each} for each in resources]
    chosen = [(await tenant.make_code(intent=each))["xr_id"] for each in intents]
    lost = (await tenant.make_code())["xr_id"]
    operator.core.lose(f"GET /v1/codes/{lost}")

    page = await operator.get(f"{codes}/revoke", params={"xr_ids": [*chosen, lost]})

    rows = [" ".join("".join(each.itertext()).split()) for each in page.find_all(".//ul[@class='ids']/li")]
    assert rows == [f"example.org/song The song{chosen[0]}", f"example.org/film The film{chosen[1]}", lost]


async def test_a_session_that_ends_after_a_revocation_leaves_it_told(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    """The page of an ended session says that nothing was changed."""
    xr_id = (await tenant.make_code())["xr_id"]
    operator.core.refuse("GET /v1/audit-log", 401, "unauthenticated")

    answer = await operator.submit(f"{codes}/revoke", {"xr_ids": [xr_id]})

    assert answer.location == f"{codes}#revoked"
    assert "1 Code was revoked." in (await operator.follow(answer)).text
    assert await _statuses(tenant) == {xr_id: "revoked"}


async def test_a_revocation_that_is_sent_again_changes_nothing(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    """The back button leads to the page that asked, with the same ids."""
    xr_id = (await tenant.make_code())["xr_id"]
    await operator.submit(f"{codes}/revoke", {"xr_ids": [xr_id]})

    page = await operator.follow(await operator.submit(f"{codes}/revoke", {"xr_ids": [xr_id]}))

    assert "0 Codes were revoked; 1 had been revoked or had expired before." in page.text


async def test_one_foreign_code_in_a_selection_stops_all_of_it(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    own, other = await tenant.make_code(), await (await make_second_project(tenant)).make_code()

    page = await operator.submit(f"{codes}/revoke", {"xr_ids": [own["xr_id"], other["xr_id"]]})

    assert page.status == 404
    assert page.trouble == "code_not_found"
    assert read_ids(page) == [own["xr_id"], other["xr_id"]]
    assert await _statuses(tenant) == {own["xr_id"]: "active"}


@pytest.mark.parametrize(("xr_ids", "words"), [([], "Select at least one Code"), (MADE_UP, "Select at most 100 Codes")])
async def test_an_empty_selection_and_one_of_101_are_refused_in_words(
    operator: ConsoleClient, codes: str, xr_ids: list[str], words: str
) -> None:
    for page in (
        await operator.get(f"{codes}/bundle", params={"xr_ids": xr_ids}),
        await operator.get(f"{codes}/revoke", params={"xr_ids": xr_ids}),
        await operator.submit(f"{codes}/revoke", {"xr_ids": xr_ids}),
    ):
        assert page.status == 422
        assert words in page.text


async def test_a_selection_of_100_is_accepted_and_a_repeated_id_counts_once(
    operator: ConsoleClient, codes: str
) -> None:
    page = await operator.get(f"{codes}/revoke", params={"xr_ids": [*MADE_UP[:100], MADE_UP[0]]})

    assert page.status == 200
    assert "100 Codes will be revoked." in page.text


async def test_a_selection_of_100_is_whole_in_another_language(operator: ConsoleClient, codes: str) -> None:
    page = await operator.get(f"{codes}/revoke", params={"xr_ids": MADE_UP[:100]})

    answer = await operator.submit("/language", {"language": "fr", "return_to": page.value("return_to")})

    listed = await operator.follow(answer)
    assert read_ids(listed) == MADE_UP[:100]


async def test_a_text_that_is_not_an_id_is_not_a_selection(operator: ConsoleClient, codes: str) -> None:
    for hostile in ("..", "xr_<script>", "xr_/../../secret0000000000"):
        page = await operator.get(f"{codes}/bundle", params={"xr_ids": [hostile]})
        assert page.status == 404, hostile
        assert page.trouble == "page_not_found"


async def test_a_bundle_with_a_revoked_code_names_it_and_leads_back_to_the_list(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    chosen = [(await tenant.make_code())["xr_id"] for _ in range(3)]
    await tenant.revoke(chosen[0])

    page = await operator.get(f"{codes}/bundle", params={"xr_ids": chosen})

    assert page.status == 409
    assert page.trouble == "code_not_active"
    assert read_ids(page) == [chosen[0]]
    assert page.find_all(f".//main/p/a[@href='{codes}']")


async def test_a_bundle_is_refused_all_the_same_when_the_codes_cannot_be_looked_at(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    chosen = [(await tenant.make_code())["xr_id"] for _ in range(2)]
    await tenant.revoke(chosen[0])
    operator.core.lose(f"GET /v1/codes/{chosen[0]}")

    page = await operator.get(f"{codes}/bundle", params={"xr_ids": chosen})

    assert (page.status, page.trouble) == (409, "code_not_active")
    assert page.find_all(".//ul[@class='ids']") == []


async def test_a_selection_of_another_site_revokes_nothing(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    xr_id = (await tenant.make_code())["xr_id"]

    page = await operator.submit(
        f"{codes}/revoke", {"xr_ids": [xr_id], "csrf_token": CSRF_TOKEN}, headers={"origin": "https://evil.example"}
    )

    assert page.status == 403
    assert await _statuses(tenant) == {xr_id: "active"}
