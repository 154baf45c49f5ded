"""The shape that objects had before API version 2025-03-31.basil.

An account's webhooks keep the version that the account had when they were made, so such events are real.
"""

from collections.abc import Mapping
from typing import Any, Final

ACACIA: Final = "2025-02-24.acacia"

_ITEM_PERIOD: Final = ("current_period_start", "current_period_end")
_BASIL_OF_INVOICE: Final = (
    "parent", "amount_overpaid", "total_taxes", "total_pretax_credit_amounts", "customer_tax_ids",
)  # fmt: skip


def to_older_shape(value: Any) -> Any:
    """Return an object, and all that it holds, in the older shape."""
    if isinstance(value, list):
        return [to_older_shape(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    older = {name: to_older_shape(item) for name, item in value.items()}
    match value.get("object"):
        case "subscription":
            item = value["items"]["data"][0]
            older.update({name: item[name] for name in _ITEM_PERIOD})
            older.update(discount=None, plan=older["items"]["data"][0]["plan"], quantity=item["quantity"])
        case "subscription_item":
            for name in _ITEM_PERIOD:
                del older[name]
            older["billing_thresholds"] = None
        case "invoice":
            _age_invoice(value, older)
        case "line_item":
            _age_line(value, older)
    return older


def _age_invoice(invoice: Mapping[str, Any], older: dict[str, Any]) -> None:
    details = invoice["parent"]["subscription_details"]
    is_paid = invoice["status"] == "paid"
    for name in _BASIL_OF_INVOICE:
        older.pop(name, None)
    older.update(
        charge=f"ch_{invoice['id'].removeprefix('in_')}",
        discount=None,
        paid=is_paid,
        paid_out_of_band=False,
        payment_intent=f"pi_{invoice['id'].removeprefix('in_')}",
        quote=None,
        subscription=details["subscription"],
        subscription_details={"metadata": details["metadata"]},
        tax=None,
        total_tax_amounts=[],
    )


def _age_line(line: Mapping[str, Any], older: dict[str, Any]) -> None:
    parent, priced = line["parent"], line["pricing"]["price_details"]
    details = parent["subscription_item_details"] or parent["invoice_item_details"]
    for name in ("parent", "pricing", "taxes", "pretax_credit_amounts"):
        older.pop(name, None)
    older.update(
        price={"id": priced["price"], "object": "price", "product": priced["product"]},
        proration=details["proration"],
        subscription=details["subscription"],
        tax_amounts=[],
        type="invoiceitem" if details["proration"] else "subscription",
    )
    if details["proration"]:
        older["invoice_item"] = details["invoice_item"]
    else:
        older["subscription_item"] = details["subscription_item"]
