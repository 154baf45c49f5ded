"""The card provider's pages are clicked through with plain forms."""

import pytest
from support.outside.card_sdk import call, create_session, make_client, read_subscription
from support.outside.running_sandbox import RunningSandbox

RETURN_URL = "http://127.0.0.1:8080/billing"


async def test_paying_leads_back_with_the_session_id(sandbox: RunningSandbox) -> None:
    session = await create_session(sandbox)
    page = await sandbox.client.get(session.url)
    assert "Sandbox Monthly" in page.text
    assert "19.00 EUR" in page.text
    paid = await sandbox.client.post(session.url, data={"act": "pay", "email": "other@example.org"})
    back = f"http://127.0.0.1:8080/billing/checkouts/bco_1?session={session.id}"
    assert (paid.status_code, paid.headers["location"]) == (303, back)
    assert "This checkout is complete." in (await sandbox.client.get(session.url)).text


async def test_a_page_lets_its_form_lead_to_the_seller_and_nowhere_else(sandbox: RunningSandbox) -> None:
    """Browsers apply `form-action` to the redirect as well."""
    session = await create_session(sandbox)
    policy = (await sandbox.client.get(session.url)).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "form-action 'self' http://127.0.0.1:8080" in policy
    assert "script-src" not in policy
    assert "unsafe" not in policy


async def test_a_hostile_address_of_the_seller_does_not_reach_the_policy(sandbox: RunningSandbox) -> None:
    session = await create_session(sandbox, success_url="http://x;script-src *;/", cancel_url=None)
    policy = (await sandbox.client.get(session.url)).headers["content-security-policy"]
    assert policy.endswith("form-action 'self'")


async def test_a_declined_card_leaves_the_checkout_open(sandbox: RunningSandbox) -> None:
    session = await create_session(sandbox)
    declined = await sandbox.client.post(session.url, data={"act": "decline"})
    assert "Your card was declined." in declined.text
    read = await call(make_client(sandbox).v1.checkout.sessions.retrieve, session.id)
    assert (read.status, read.subscription) == ("open", None)


async def test_going_back_leaves_the_checkout_open(sandbox: RunningSandbox) -> None:
    session = await create_session(sandbox)
    left = await sandbox.client.post(session.url, data={"act": "cancel"})
    assert left.headers["location"] == session.cancel_url
    assert (await sandbox.look("card"))["sessions"][0]["status"] == "open"


async def test_a_later_payment_completes_the_checkout_unpaid(sandbox: RunningSandbox) -> None:
    session = await create_session(sandbox)
    await sandbox.client.post(session.url, data={"act": "pay-later"})
    read = await call(make_client(sandbox).v1.checkout.sessions.retrieve, session.id)
    assert (read.status, read.payment_status) == ("complete", "unpaid")
    assert isinstance(read.subscription, str)
    assert (await read_subscription(sandbox, read.subscription)).status == "incomplete"


async def test_the_pages_show_text_as_text(sandbox: RunningSandbox) -> None:
    await sandbox.control("/card/prices", id="price_x", name="<script>alert(1)</script>", unit_amount=1)
    session = await create_session(sandbox, line_items=[{"price": "price_x", "quantity": 1}])
    for path in (session.url, "/card"):
        text = (await sandbox.client.get(path)).text
        assert "<script" not in text
        assert "&lt;script&gt;" in text


async def open_portal(sandbox: RunningSandbox) -> tuple[str, str]:
    """Return the address of a customer's portal, and the id of their subscription."""
    session = await create_session(sandbox)
    await sandbox.client.post(session.url, data={"act": "pay"})
    (bought,) = (await sandbox.look("card"))["sessions"]
    portals = make_client(sandbox).v1.billing_portal.sessions
    portal = await call(portals.create, {"customer": bought["customer"], "return_url": RETURN_URL})
    return portal.url, bought["subscription"]


@pytest.mark.parametrize(
    ("act", "status", "ends"),
    [("cancel-at-period-end", "active", True), ("end", "canceled", False)],
)
async def test_a_customer_cancels_in_the_portal(sandbox: RunningSandbox, act: str, status: str, *, ends: bool) -> None:
    url, subscription_id = await open_portal(sandbox)
    assert RETURN_URL in (await sandbox.client.get(url)).text
    await sandbox.client.post(url, data={"subscription": subscription_id, "act": act})
    subscription = await read_subscription(sandbox, subscription_id)
    assert (subscription.status, subscription.cancel_at_period_end) == (status, ends)
    assert subscription.canceled_at


async def test_a_customer_keeps_a_subscription_after_all(sandbox: RunningSandbox) -> None:
    url, subscription_id = await open_portal(sandbox)
    for act in ("cancel-at-period-end", "resume"):
        await sandbox.client.post(url, data={"subscription": subscription_id, "act": act})
    subscription = await read_subscription(sandbox, subscription_id)
    assert (subscription.cancel_at_period_end, subscription.canceled_at) == (False, None)


async def test_a_customer_changes_the_plan_in_the_portal(sandbox: RunningSandbox) -> None:
    url, subscription_id = await open_portal(sandbox)
    data = {"subscription": subscription_id, "act": "change-price", "price": "price_sandbox_large_monthly"}
    await sandbox.client.post(url, data=data)
    subscription = await read_subscription(sandbox, subscription_id)
    assert subscription["items"].data[0].price.id == "price_sandbox_large_monthly"


async def test_a_portal_reaches_the_subscriptions_of_its_customer_only(sandbox: RunningSandbox) -> None:
    url, _ = await open_portal(sandbox)
    session = await create_session(sandbox)
    await sandbox.client.post(session.url, data={"act": "pay"})
    other = (await sandbox.look("card"))["sessions"][0]["subscription"]
    refused = await sandbox.client.post(url, data={"subscription": other, "act": "end"})
    assert "not yours" in refused.text
    assert (await read_subscription(sandbox, other)).status == "active"


@pytest.mark.parametrize("path", ["/card/pay/cs_test_unknown", "/card/portal/bps_unknown", "/local/pay/unknown"])
async def test_an_unknown_page_is_404(sandbox: RunningSandbox, path: str) -> None:
    for response in (await sandbox.client.get(path), await sandbox.client.post(path, data={"act": "pay"})):
        assert response.status_code == 404


async def test_every_page_of_the_overview_answers(sandbox: RunningSandbox) -> None:
    await open_portal(sandbox)
    for path in ("/", "/card", "/local", "/accounting", "/desk", "/deliveries", "/switches"):
        page = await sandbox.client.get(path)
        assert page.status_code == 200
        assert "<script" not in page.text
        assert "form-action 'self'" in page.headers["content-security-policy"]
    assert (await sandbox.client.get("/style.css")).headers["content-type"].startswith("text/css")
