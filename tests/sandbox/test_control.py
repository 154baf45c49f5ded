"""`/control`: refusals, starting again, and who may call it."""

import pytest
from support.outside.card_sdk import create_session
from support.outside.running_sandbox import RunningSandbox

from soundmark.sandbox.shelf import Shelf


async def test_what_cannot_be_done_is_refused_with_a_reason(sandbox: RunningSandbox, subtests: pytest.Subtests) -> None:
    for path, fields, status in [
        ("/card/sessions/cs_test_unknown/pay", {}, 404),
        ("/card/sessions/cs_test_unknown/pay", {"email": "x"}, 422),
        ("/card/subscriptions/sub_unknown/renew", {}, 404),
        ("/card/subscriptions/sub_unknown/burn", {}, 404),
        ("/card/subscriptions/sub_unknown", {"status": "active"}, 404),
        ("/card/prices", {"unit_amount": "1e3"}, 422),
        ("/card/prices", {"unit_amount": 1, "active": "perhaps"}, 422),
        ("/card/prices", {"unit_amount": 1, "interval": "week"}, 422),
        ("/card/settings", {"event_shape": "clover"}, 422),
        ("/local/payments/unknown", {"status": "SUCCESS"}, 404),
        ("/local/settings", {"notification_method": "PUT"}, 422),
        ("/accounting/settings", {"decimals": 9}, 422),
        ("/accounting/thirdparties", {}, 422),
        ("/desk/conversations/9/reply", {"text": "x"}, 404),
        ("/desk/settings", {"signature": "none"}, 422),
    ]:
        with subtests.test(path=path, fields=fields, status=status):
            refused = await sandbox.client.post(f"/control{path}", json=fields)
            assert refused.status_code == status
            assert refused.json()["error"]


@pytest.mark.parametrize(("body", "status"), [(b"{", 400), (b"[]", 400), (b"{}" + b" " * 70_000, 413)])
async def test_a_body_is_a_small_json_object(sandbox: RunningSandbox, body: bytes, status: int) -> None:
    assert (await sandbox.client.post("/control/reset", content=body)).status_code == status


async def test_a_checkout_is_paid_once(sandbox: RunningSandbox) -> None:
    session = await create_session(sandbox)
    await sandbox.control(f"/card/sessions/{session.id}/pay")
    again = await sandbox.client.post(f"/control/card/sessions/{session.id}/pay", json={})
    assert (again.status_code, again.json()) == (409, {"error": "the session is complete and paid"})


async def test_a_reset_forgets_everything(sandbox: RunningSandbox) -> None:
    session = await create_session(sandbox, key="bco_1-1")
    await sandbox.misbehave("card", "server_error")
    await sandbox.control("/webhooks/hold", system="card")
    await sandbox.control("/accounting/settings", module_on=False)
    await sandbox.control("/reset")
    card = await sandbox.look("card")
    assert (card["sessions"], card["events"]) == ([], [])
    assert {price["id"] for price in card["prices"]} >= {"price_sandbox_monthly", "price_sandbox_yearly"}
    state = (await sandbox.client.get("/control")).json()
    assert (state["switches"], state["held"]) == ([], [])
    assert state["settings"]["accounting"] == {"decimals": 2, "is_module_on": True, "is_user_restricted": False}
    assert (await create_session(sandbox, key="bco_1-1")).id != session.id


@pytest.mark.parametrize("back", ["//evil.example/", "/\\evil.example/", "https://evil.example/"])
async def test_a_form_leads_to_a_page_of_the_sandbox_only(sandbox: RunningSandbox, back: str) -> None:
    done = await sandbox.client.post("/control/switches/reset", data={"back": back})
    assert (done.status_code, done.headers["location"]) == (303, "/")


async def test_only_this_machine_is_answered(sandbox: RunningSandbox) -> None:
    """A name of somebody else's that leads here would let their pages in."""
    for host in ("evil.example", "evil.example:8090", "x@127.0.0.1", ""):
        refused = await sandbox.client.get("/", headers={"host": host})
        assert refused.status_code == 403
    port = sandbox.url.rpartition(":")[2]
    for host in ("localhost", f"localhost:{port}", f"[::1]:{port}"):
        assert (await sandbox.client.get("/", headers={"host": host})).status_code == 200


async def test_a_form_or_a_query_that_no_page_sends_is_refused(sandbox: RunningSandbox) -> None:
    """Before anything of it is decoded."""
    form = {"content-type": "application/x-www-form-urlencoded"}
    for path in ("/control/reset", "/card/pay/cs_test_1"):
        for body in ("&".join(["a=1"] * 101), "a=" + "%41" * 22_000):
            assert (await sandbox.client.post(path, content=body, headers=form)).status_code == 413
    assert (await sandbox.client.get("/?a=" + "%41" * 3000)).status_code == 414


async def test_a_form_of_another_site_is_refused(sandbox: RunningSandbox) -> None:
    foreign = {"origin": "https://evil.example"}
    assert (await sandbox.client.post("/control/reset", json={}, headers=foreign)).status_code == 403
    own = {"origin": sandbox.url}
    assert (await sandbox.client.post("/control/reset", json={}, headers=own)).status_code == 200


def test_memory_is_bounded() -> None:
    shelf: Shelf[int] = Shelf(items_max=2)
    for number in range(3):
        shelf.add(str(number), number)
    assert (list(shelf), shelf.newest_first(), shelf.find("0"), len(shelf)) == ([1, 2], [2, 1], None, 2)
