"""Every switch, and how it is turned on and off."""

import asyncio
import contextlib

import httpx2
import pytest
from support.outside.accounting import list_invoices, post_invoice
from support.outside.running_sandbox import RunningSandbox

from soundmark.sandbox.misbehaviour import OPERATION_KINDS, WEBHOOK_KINDS

PRICE = "/card/v1/prices/price_sandbox_monthly"
# Whether a connection that is cut ends or is reset, depends on what was read of the request before.
CUT_OFF = (httpx2.RemoteProtocolError, httpx2.ReadError)
GOOD_REQUESTS = {
    "card": PRICE,
    "local": "/local/api/v2/verify_payment/{payment}",
    "accounting": "/accounting/api/index.php/thirdparties/1",
    "desk": "/desk/api/conversations",
}


def credentials(sandbox: RunningSandbox) -> dict[str, dict[str, str]]:
    local = f"{sandbox.secret('LOCAL_PUBLIC_KEY')}:{sandbox.secret('LOCAL_SECRET_KEY')}"
    return {
        "card": {"authorization": f"Bearer {sandbox.secret('CARD_SECRET_KEY')}"},
        "local": {"authorization": f"Bearer {local}"},
        "accounting": {"DOLAPIKEY": sandbox.secret("ACCOUNTING_API_KEY")},
        "desk": {"X-FreeScout-API-Key": sandbox.secret("SUPPORT_API_KEY")},
    }


async def ask(sandbox: RunningSandbox, system: str) -> httpx2.Response:
    headers = credentials(sandbox)[system]
    path = GOOD_REQUESTS[system]
    if system == "local":
        body = {"amount": 1000, "success_link": "http://x.test/", "fail_link": "http://x.test/"}
        made = await sandbox.client.post("/local/api/v2/generate_payment", json=body, headers=headers)
        path = path.format(payment=made.json()["result"]["payment_id"])
    return await sandbox.client.get(path, headers=headers)


OPERATIONS = {
    "card": "read_price",
    "local": "verify_payment",
    "accounting": "read_third_party",
    "desk": "find_conversations",
}


@pytest.mark.parametrize("system", OPERATIONS)
@pytest.mark.parametrize("kind", ["down", "lost_answer", "half_body"])
async def test_a_connection_ends_without_a_whole_answer(sandbox: RunningSandbox, system: str, kind: str) -> None:
    await sandbox.misbehave(system, kind, operation=OPERATIONS[system])
    with pytest.raises(CUT_OFF):
        await ask(sandbox, system)
    assert (await ask(sandbox, system)).status_code == 200, "it happens once"


@pytest.mark.parametrize("system", OPERATIONS)
@pytest.mark.parametrize(
    ("kind", "status", "media_type"),
    [
        ("server_error", 500, "application/json"),
        ("rate_limited", 429, "application/json"),
        ("refused", 401, "application/json"),
        ("conflict", 409, "application/json"),
        ("html_as_json", 200, "application/json"),
        ("list", 200, "application/json"),
        ("empty_list", 200, "application/json"),
        ("firewall", 403, "text/html; charset=utf-8"),
        ("html", 200, "text/html; charset=utf-8"),
        ("wrong_object", 200, "application/json"),
    ],
)
async def test_another_answer_takes_the_place_of_the_work(
    sandbox: RunningSandbox, system: str, kind: str, status: int, media_type: str
) -> None:
    expected = (await ask(sandbox, system)).json()
    await sandbox.misbehave(system, kind, operation=OPERATIONS[system])
    answer = await ask(sandbox, system)
    assert (answer.status_code, answer.headers["content-type"]) == (status, media_type)
    if kind == "html_as_json":
        assert answer.text.startswith("<!doctype html>")
    else:
        assert media_type != "application/json" or answer.json() != expected


async def test_a_redirect_leads_elsewhere(sandbox: RunningSandbox) -> None:
    await sandbox.misbehave("card", "redirect")
    answer = await ask(sandbox, "card")
    assert (answer.status_code, answer.headers["location"]) == (307, "http://127.0.0.1:9/elsewhere")


async def test_an_endless_answer_ends_with_its_connection(sandbox: RunningSandbox) -> None:
    await sandbox.misbehave("card", "endless")
    async with sandbox.client.stream("GET", PRICE, headers=credentials(sandbox)["card"]) as answer:
        assert answer.headers["content-type"] == "application/json"
        size = 0
        async for chunk in answer.aiter_raw():
            size += len(chunk)
            if size > 10_000_000:
                break
    assert (await ask(sandbox, "card")).status_code == 200


async def test_a_held_answer_did_its_work_and_waits(sandbox: RunningSandbox) -> None:
    await sandbox.hold("card", times=2)
    asking = [asyncio.create_task(ask(sandbox, "card")) for _ in range(2)]
    await sandbox.until_held("card", 2)
    fewer = await sandbox.client.post("/control/answers/await", json={"system": "card", "count": 3, "seconds": 0})
    assert (fewer.status_code, fewer.json()) == (409, {"error": "fewer answers are held"})
    assert not any(each.done() for each in asking)
    await sandbox.release("card")
    assert [(await each).status_code for each in asking] == [200, 200]


@pytest.mark.parametrize(("end", "made_count"), [("/answers/release", 1), ("/reset", 0)])
async def test_a_held_request_works_once_it_is_released_unless_it_is_reset(
    sandbox: RunningSandbox, end: str, made_count: int
) -> None:
    path, headers = "/accounting/api/index.php/invoices", credentials(sandbox)["accounting"]
    await sandbox.misbehave("accounting", "held", operation="create_invoice")
    asking = asyncio.create_task(sandbox.client.post(path, json={"socid": 1}, headers=headers))
    await sandbox.until_held("accounting")
    assert (await sandbox.look("accounting"))["invoices"] == []
    await sandbox.control(end, **({"system": "accounting"} if made_count else {}))
    with contextlib.nullcontext() if made_count else pytest.raises(CUT_OFF):
        await asking
    assert len((await sandbox.look("accounting"))["invoices"]) == made_count


async def test_a_held_error_did_no_work_and_waits(sandbox: RunningSandbox) -> None:
    await sandbox.misbehave("desk", "held_error")
    asking = asyncio.create_task(ask(sandbox, "desk"))
    await sandbox.until_held("desk")
    assert not asking.done()
    await sandbox.release("desk")
    assert (await asking).status_code == 500


async def test_a_reset_lets_held_answers_go(sandbox: RunningSandbox) -> None:
    await sandbox.hold("desk")
    asking = asyncio.create_task(ask(sandbox, "desk"))
    await sandbox.until_held("desk")
    await sandbox.control("/reset")
    assert (await asking).status_code == 200


async def test_a_refusal_can_say_more(sandbox: RunningSandbox) -> None:
    await sandbox.misbehave(
        "local", "refused", operation="verify_payment", merge={"message": "more"}, headers={"x-more": "1"}
    )
    refused = await ask(sandbox, "local")
    assert (refused.json()["message"], refused.headers["x-more"]) == ("more", "1")


async def test_a_slow_answer_is_late_and_right(sandbox: RunningSandbox) -> None:
    await sandbox.misbehave("card", "slow", seconds=5)
    with pytest.raises(httpx2.ReadTimeout):
        await sandbox.client.get(PRICE, headers=credentials(sandbox)["card"], timeout=0.2)
    await sandbox.misbehave("card", "slow", seconds=0.01)
    assert (await ask(sandbox, "card")).json()["id"] == "price_sandbox_monthly"


async def test_an_answer_that_is_lost_did_its_work(sandbox: RunningSandbox) -> None:
    await sandbox.misbehave("accounting", "lost_answer", operation="create_invoice")
    with pytest.raises(CUT_OFF):
        await post_invoice(sandbox)
    assert len(await list_invoices(sandbox)) == 1


async def test_an_error_that_is_false_did_its_work(sandbox: RunningSandbox) -> None:
    await sandbox.misbehave("accounting", "false_error", operation="create_invoice")
    assert (await post_invoice(sandbox)).status_code == 500
    assert len(await list_invoices(sandbox)) == 1


async def test_a_system_that_is_down_did_none(sandbox: RunningSandbox) -> None:
    await sandbox.misbehave("accounting", "down", operation="create_invoice")
    with pytest.raises(CUT_OFF):
        await post_invoice(sandbox)
    assert await list_invoices(sandbox) == []


async def test_a_wrong_amount_is_one_unit_too_high(sandbox: RunningSandbox) -> None:
    await sandbox.misbehave("card", "wrong_amount")
    assert (await ask(sandbox, "card")).json()["unit_amount"] == 1901
    await sandbox.misbehave("local", "wrong_amount", operation="verify_payment")
    assert (await ask(sandbox, "local")).json()["result"]["amount"] == 1001
    headers = credentials(sandbox)["accounting"]
    await post_invoice(sandbox, subprice=10, tva_tx=0)
    await sandbox.misbehave("accounting", "wrong_amount", operation="read_invoice")
    read = await sandbox.client.get("/accounting/api/index.php/invoices/1", headers=headers)
    assert read.json()["total_ttc"] == "11.00000000"


async def test_an_altered_answer_has_what_was_merged_into_it(sandbox: RunningSandbox) -> None:
    await sandbox.misbehave("card", "altered", merge={"recurring": {"interval": "year"}, "currency": None})
    price = (await ask(sandbox, "card")).json()
    assert (price["recurring"]["interval"], price["recurring"]["interval_count"]) == ("year", 1)
    assert "currency" not in price


async def test_each_item_of_a_list_is_altered(sandbox: RunningSandbox) -> None:
    for _ in range(2):
        await post_invoice(sandbox)
    await sandbox.misbehave("accounting", "altered", merge={"id": "7"})
    path = "/accounting/api/index.php/invoices?properties=id,socid"
    found = await sandbox.client.get(path, headers=credentials(sandbox)["accounting"])
    assert found.json() == [{"id": "7", "socid": "1"}] * 2


async def test_a_switch_is_for_one_operation_and_some_times(sandbox: RunningSandbox) -> None:
    await sandbox.misbehave("card", "server_error", operation="read_session", times=2)
    assert (await ask(sandbox, "card")).status_code == 200
    path, headers = "/card/v1/checkout/sessions/nothing", credentials(sandbox)["card"]
    statuses = [(await sandbox.client.get(path, headers=headers)).status_code for _ in range(3)]
    assert statuses == [500, 500, 404]


async def test_a_switch_can_last_until_it_is_reset(sandbox: RunningSandbox) -> None:
    await sandbox.misbehave("card", "server_error", times=0)
    await sandbox.misbehave("desk", "server_error", times=0)
    assert [(await ask(sandbox, "card")).status_code for _ in range(3)] == [500, 500, 500]
    await sandbox.control("/switches/reset", system="card")
    assert (await ask(sandbox, "card")).status_code == 200
    assert (await ask(sandbox, "desk")).status_code == 500
    await sandbox.control("/switches/reset")
    assert (await sandbox.look("switches"))["switches"] == []


async def test_the_page_turns_a_switch_on(sandbox: RunningSandbox) -> None:
    page = (await sandbox.client.get("/switches")).text
    assert all(f"<option>{kind}</option>" in page for kind in (*OPERATION_KINDS, *WEBHOOK_KINDS))
    form = {"system": "card", "kind": "server_error", "operation": "*", "times": "1", "seconds": "2"}
    done = await sandbox.client.post("/control/switches", data={**form, "back": "/switches"})
    assert (done.status_code, done.headers["location"]) == (303, "/switches")
    assert "server_error" in (await sandbox.client.get("/switches")).text
    assert (await ask(sandbox, "card")).status_code == 500


async def test_a_wrong_switch_is_refused(sandbox: RunningSandbox, subtests: pytest.Subtests) -> None:
    for fields in [
        {"system": "mail", "kind": "slow"},
        {"system": "card", "kind": "angry"},
        {"system": "card", "kind": "slow", "times": -1},
        {"system": "card", "kind": "slow", "times": True},
        {"system": "card", "kind": "slow", "seconds": "x"},
        {"system": "card", "kind": "altered", "merge": "[]"},
        {"system": "card", "kind": "slow", "operaton": "x"},
        {"system": "card", "kind": "slow", "operation": "create_sesion"},
        {"kind": "slow"},
    ]:
        with subtests.test(fields=fields):
            refused = await sandbox.client.post("/control/switches", json=fields)
            assert (refused.status_code, list(refused.json())) == (422, ["error"])


async def test_switches_are_limited_in_number(sandbox: RunningSandbox) -> None:
    for _ in range(100):
        await sandbox.misbehave("card", "slow")
    refused = await sandbox.client.post("/control/switches", json={"system": "card", "kind": "slow"})
    assert refused.status_code == 409
