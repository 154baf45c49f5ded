"""`soundmark billing`: offers, checkouts and subscriptions."""

from typing import Annotated, Final

import typer
from soundmark_sdk.client.records import Checkout, Offer, Subscription

from soundmark.cli.api import open_client, show_facts, show_json, show_outcome, show_page, show_table
from soundmark.cli.intents import printable
from soundmark.cli.options import AsJson, Connection, OrganizationCall, Paging, command
from soundmark.core.domain.billing.accounting import amount_of

app = typer.Typer(add_completion=False, no_args_is_help=True)

_OFFER_HEADINGS: Final = ("Offer", "Plan", "A month", "Provider", "Price", "For")
_UNITS: Final = {"codes": "Codes", "audience": "events"}
_CHECKOUT_HEADINGS: Final = ("Checkout", "Offer", "Status", "Created", "Expires")
_SUBSCRIPTION_HEADINGS: Final = (
    "Subscription", "Plan", "Product", "Provider", "Status", "Paid through", "Ends", "Invoice",
)  # fmt: skip


@app.callback()
def billing() -> None:
    """Buy plans, and list an organisation's subscriptions. An API key cannot do this."""


@command(app)
def offers(
    *,
    country: Annotated[str | None, typer.Option(metavar="CC", help="Show the offers in a country, such as TN.")] = None,
    connection: Connection,
    as_json: AsJson = False,
) -> None:
    """List the offers for sale."""
    with open_client(connection) as client:
        listed = client.billing.offers(country=country)
    if as_json:
        show_json(listed.document)
    else:
        show_table(_OFFER_HEADINGS, map(_offer_row, listed.data))


@command(app)
def checkout(
    offer: Annotated[str, typer.Argument(metavar="OFFER", help="The id of an offer that is for sale.")],
    *,
    idempotency_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Repeating the command with the same key within 24 hours prints the same page."
        ),
    ] = None,
    call: OrganizationCall,
) -> None:
    """Start the purchase of a plan, and print the payment page. The page expires after a day."""
    with open_client(call.connection, call.organization) as client:
        started = client.billing.create_checkout(offer, idempotency_key=idempotency_key)
    if call.as_json:
        show_json(started.document)
        return
    # In one piece: a table would break the address into lines.
    typer.echo(f"{started.id} is {started.status}; pay at {printable(started.checkout_url)}")


@command(app)
def show(
    checkout_id: Annotated[str, typer.Argument(metavar="CHECKOUT", help="The checkout's id.")],
    *,
    call: OrganizationCall,
) -> None:
    """Show a checkout."""
    with open_client(call.connection, call.organization) as client:
        found = client.billing.get_checkout(checkout_id)
    if call.as_json:
        show_json(found.document)
    else:
        show_facts(zip(_CHECKOUT_HEADINGS, _checkout_row(found), strict=True))


@command(app)
def checkouts(*, call: OrganizationCall) -> None:
    """List the checkouts that wait for a payment."""
    with open_client(call.connection, call.organization) as client:
        listed = client.billing.pending_checkouts()
    if call.as_json:
        show_json(listed.document)
    else:
        show_table(_CHECKOUT_HEADINGS, map(_checkout_row, listed.data))


@command(app)
def cancel(
    checkout_id: Annotated[str, typer.Argument(metavar="CHECKOUT", help="The checkout's id.")],
    *,
    call: OrganizationCall,
) -> None:
    """Give up a checkout that waits for a payment. The card provider closes its page; the local one closes none."""
    with open_client(call.connection, call.organization) as client:
        ended = client.billing.cancel_checkout(checkout_id)
    show_outcome(ended, f"{ended.id} is {ended.status}", as_json=call.as_json)


@command(app)
def subscriptions(*, paging: Paging, call: OrganizationCall) -> None:
    """List an organisation's purchases and contracts, newest first."""
    with open_client(call.connection, call.organization) as client:
        page = client.subscriptions.page(limit=paging.limit, cursor=paging.cursor)
    show_page(page, _SUBSCRIPTION_HEADINGS, _subscription_row, as_json=call.as_json)


@command(app)
def portal(*, call: OrganizationCall) -> None:
    """Print the card provider's page on which a person changes or cancels subscriptions. It is valid for minutes."""
    with open_client(call.connection, call.organization) as client:
        opened = client.billing.open_portal()
    show_outcome(opened, printable(opened.portal_url), as_json=call.as_json)


def _offer_row(offer: Offer) -> tuple[object, ...]:
    plan = offer.plan
    quota = f"{plan.monthly_quota} {_UNITS[plan.product]}"
    return (offer.id, plan.name, quota, offer.provider, _write_price(offer), _write_term(offer))


def _write_term(offer: Offer) -> str:
    if offer.entitlement_months is not None:
        return "1 month" if offer.entitlement_months == 1 else f"{offer.entitlement_months} months"
    return "" if offer.interval is None else f"each {offer.interval}"


def _write_price(offer: Offer) -> str:
    """Return an amount in its currency; nothing for a card offer whose price is in tiers."""
    if offer.amount_minor is None or offer.currency is None:
        return ""
    return f"{amount_of(offer.amount_minor, offer.currency):f} {offer.currency}"


def _checkout_row(found: Checkout) -> tuple[object, ...]:
    return (found.id, found.offer_id, found.status, found.created_at, found.expires_at)


def _subscription_row(one: Subscription) -> tuple[object, ...]:
    invoice = one.accounting.invoice_id if one.accounting.invoice_id is not None else one.accounting.status
    ends = "at the period's end" if one.cancel_at_period_end else ""
    return (one.id, one.plan_name, one.product, one.provider, one.status, one.paid_through, ends, invoice)
