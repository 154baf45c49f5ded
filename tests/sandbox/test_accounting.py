"""The accounting stand-in, against what was seen of a real Dolibarr 22."""

from typing import Any

import httpx2
import pytest
from support.outside.accounting import API, accounting_headers, delete_invoice, list_invoices, post_invoice
from support.outside.running_sandbox import RunningSandbox


async def get(sandbox: RunningSandbox, path: str, **params: str) -> httpx2.Response:
    return await sandbox.client.get(API + path, params=params, headers=accounting_headers(sandbox))


async def search(sandbox: RunningSandbox, ref_ext: str, **params: str) -> Any:
    found = await get(sandbox, "/invoices", sqlfilters=f"(t.ref_ext:=:'{ref_ext}')", **params)
    assert found.status_code == 200
    return found.json()


async def test_a_new_draft_is_answered_with_a_bare_number(sandbox: RunningSandbox) -> None:
    created = await post_invoice(sandbox)
    assert (created.status_code, created.text) == (200, "1")
    draft = (await get(sandbox, "/invoices/1")).json()
    assert (draft["id"], draft["ref"], draft["status"], draft["socid"]) == ("1", "(PROV1)", "0", "1")
    assert (draft["ref_ext"], draft["date"]) == ("svc:1", 1795204968)


@pytest.mark.parametrize(
    ("decimals", "without_tax", "tax", "total"),
    [
        (2, "8.87000000", "1.69000000", "10.56000000"),
        (3, "8.87000000", "1.68500000", "10.55500000"),
    ],
)
async def test_totals_are_texts_rounded_as_the_system_is_set_up(
    sandbox: RunningSandbox, decimals: int, without_tax: str, tax: str, total: str
) -> None:
    """A payment of 10.555 dinars at 19 per cent is exact with three decimals only."""
    await sandbox.control("/accounting/settings", decimals=decimals)
    await post_invoice(sandbox)
    draft = (await get(sandbox, "/invoices/1")).json()
    assert (draft["total_ht"], draft["total_tva"], draft["total_ttc"]) == (without_tax, tax, total)
    assert draft["lines"][0]["subprice"] == "8.86975000"


async def test_the_same_reference_can_be_used_twice(sandbox: RunningSandbox) -> None:
    for _ in range(2):
        assert (await post_invoice(sandbox)).status_code == 200
    assert [draft["id"] for draft in await search(sandbox, "svc:1", limit="2")] == ["1", "2"]


async def test_a_search_returns_the_chosen_properties_or_nothing(sandbox: RunningSandbox) -> None:
    assert await search(sandbox, "svc:1") == []
    await post_invoice(sandbox)
    found = await search(sandbox, "svc:1", properties="id,ref_ext,socid,total_ttc", limit="2")
    assert found == [{"id": "1", "ref_ext": "svc:1", "socid": "1", "total_ttc": "10.56000000"}]


async def test_a_search_finds_a_reference_in_other_letter_case(sandbox: RunningSandbox) -> None:
    await post_invoice(sandbox)
    assert [draft["ref_ext"] for draft in await search(sandbox, "SVC:1")] == ["svc:1"]
    assert await search(sandbox, "svc_1") == []


@pytest.mark.parametrize("path", ["/invoices/ref_ext/svc:1", "/invoices/ref_ext/svc%3A1", "/invoices/ref_ext/a%22b"])
async def test_the_firewall_refuses_a_colon_in_the_path(sandbox: RunningSandbox, path: str) -> None:
    await post_invoice(sandbox)
    refused = await sandbox.client.get(API + path, headers=accounting_headers(sandbox))
    assert (refused.status_code, refused.headers["content-type"]) == (403, "text/html; charset=utf-8")


async def test_a_reference_without_a_colon_is_found_by_its_path(sandbox: RunningSandbox) -> None:
    await post_invoice(sandbox, ref_ext="svc-2")
    assert (await get(sandbox, "/invoices/ref_ext/svc-2")).json()["id"] == "1"
    missing = await get(sandbox, "/invoices/ref_ext/svc-3")
    assert missing.json()["error"] == {"code": 404, "message": "Not Found: Invoice not found"}
    assert set(missing.json()) == {"error", "debug"}


async def test_a_third_party_is_described_in_texts(sandbox: RunningSandbox) -> None:
    party = (await get(sandbox, "/thirdparties/1")).json()
    assert (party["id"], party["status"], party["client"], party["entity"]) == ("1", "1", "1", "1")
    assert (await get(sandbox, "/thirdparties/99")).status_code == 404
    added = await sandbox.control("/accounting/thirdparties", name="New")
    assert (await get(sandbox, f"/thirdparties/{added['id']}")).json()["name"] == "New"


async def test_another_entity_sees_nothing(sandbox: RunningSandbox) -> None:
    await post_invoice(sandbox)
    of_two = accounting_headers(sandbox, entity=2)
    for path in ("/thirdparties/1", "/invoices/1"):
        assert (await sandbox.client.get(API + path, headers=of_two)).status_code == 404
    assert (await sandbox.client.get(f"{API}/invoices", headers=of_two)).json() == []


@pytest.mark.parametrize(
    ("changes", "status"),
    [({"socid": None}, 400), ({"socid": "x"}, 400), ({"lines": "x"}, 400), ({"socid": 99}, 500)],
)
async def test_a_wrong_draft_is_refused(sandbox: RunningSandbox, changes: dict[str, Any], status: int) -> None:
    refused = await post_invoice(sandbox, **changes)
    assert (refused.status_code, refused.json()["error"]["code"]) == (status, status)
    assert ("foreign key" in refused.text) == (status == 500)


async def test_a_body_that_is_no_json_and_a_filter_that_is_none_are_refused(sandbox: RunningSandbox) -> None:
    for body in (b"{", b"{}"):
        broken = await sandbox.client.post(f"{API}/invoices", content=body, headers=accounting_headers(sandbox))
        assert broken.status_code == 400
    assert (await get(sandbox, "/invoices", sqlfilters="ref_ext = 1")).status_code == 400
    assert (await get(sandbox, "/nothing")).status_code == 404


async def test_a_wrong_key_is_401(sandbox: RunningSandbox) -> None:
    refused = await sandbox.client.get(f"{API}/invoices", headers={"DOLAPIKEY": "wrong"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, 401)


async def test_an_error_of_the_server_shows_sql(sandbox: RunningSandbox) -> None:
    await sandbox.misbehave("accounting", "server_error")
    assert "llx_facture" in (await get(sandbox, "/invoices/1")).json()["error"]["0"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({}, None),
        ({"ref_client": "x"}, "these members are missing or unexpected: ['ref_client']"),
        (
            {"lines": [{"desc": "Plan", "qty": 1, "subprice": 1, "tva_tx": 0, "product_type": 1, "date_start": 1}]},
            "these members are missing or unexpected: ['date_end']",
        ),
        ({"subprice": 8.869747}, "subprice has more decimals than are kept"),
        ({"tva_tx": 7.100001}, "tva_tx has more decimals than are kept"),
    ],
)
async def test_what_the_system_takes_but_soundmark_must_not_send_is_a_complaint(
    sandbox: RunningSandbox, changes: dict[str, Any], complaint: str | None
) -> None:
    assert (await post_invoice(sandbox, **changes)).status_code == 200
    assert await sandbox.complaints() == ([f"accounting: {complaint}"] if complaint else [])


async def test_a_question_that_is_not_careful_is_a_complaint(sandbox: RunningSandbox) -> None:
    careful = {"properties": "id", "limit": "2"}
    await get(sandbox, "/invoices", **careful)
    assert await sandbox.complaints() == []
    await get(sandbox, "/invoices", limit="2")
    await get(sandbox, "/invoices", **careful, DOLAPIKEY=sandbox.secret("ACCOUNTING_API_KEY"))
    headers = accounting_headers(sandbox) | {"Accept-Encoding": "gzip, br;q=0.5"}
    await sandbox.client.get(f"{API}/invoices", params=careful, headers=headers)
    assert await sandbox.complaints() == [
        "accounting: a search has no properties or no limit",
        "accounting: the key is in the address",
        "accounting: br or bz is an accepted encoding",
    ]


async def test_a_draft_can_be_deleted(sandbox: RunningSandbox) -> None:
    """Its id is not used again."""
    await post_invoice(sandbox)
    await delete_invoice(sandbox)
    assert (await get(sandbox, "/invoices/1")).status_code == 404
    assert (await sandbox.client.post("/control/accounting/invoices/1/delete", json={})).status_code == 404
    assert (await post_invoice(sandbox)).text == "2"
    assert [draft["id"] for draft in await list_invoices(sandbox)] == ["2"]


async def test_without_the_module_everything_is_a_page_with_200(sandbox: RunningSandbox) -> None:
    await sandbox.control("/accounting/settings", module_on=False)
    answer = await get(sandbox, "/thirdparties/1")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "Module <b>Api</b> must be enabled" in answer.text


async def test_a_restricted_user_makes_invoices_that_it_does_not_see(sandbox: RunningSandbox) -> None:
    """As a user who may not read all third parties, seen of a real one: the search finds nothing, reading is 403."""
    await sandbox.control("/accounting/settings", restricted_user=True)
    assert (await post_invoice(sandbox)).text == "1"
    assert await search(sandbox, "svc:1") == []
    for path in ("/thirdparties/1", "/invoices/1"):
        refused = await get(sandbox, path)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, 403)
    assert (await get(sandbox, "/invoices/2")).status_code == 404
    await sandbox.control("/accounting/settings", restricted_user=False)
    assert [draft["id"] for draft in await search(sandbox, "svc:1")] == ["1"]


async def test_the_page_lists_drafts(sandbox: RunningSandbox) -> None:
    await post_invoice(sandbox)
    page = (await sandbox.client.get("/accounting")).text
    assert "svc:1" in page
    assert "10.56" in page
