"""The accounting system of the sandbox, and what a person does in it."""

from typing import Any, Final

import httpx2

from support.outside.running_sandbox import RunningSandbox

API: Final = "/accounting/api/index.php"


def accounting_headers(sandbox: RunningSandbox, entity: int = 1) -> dict[str, str]:
    """Return the headers of a careful caller."""
    key = sandbox.secret("ACCOUNTING_API_KEY")
    return {"DOLAPIKEY": key, "DOLAPIENTITY": str(entity), "Accept-Encoding": "identity"}


async def post_invoice(sandbox: RunningSandbox, *, entity: int = 1, **changes: Any) -> httpx2.Response:
    """Make a draft of 10.555 dinars; `changes` are members of the body or of its line."""
    line = {"desc": "Plan", "qty": 1, "subprice": 8.86975, "tva_tx": 19, "product_type": 1}
    line |= {"date_start": 1795132800, "date_end": 1797724800}
    line |= {name: changes.pop(name) for name in line.keys() & changes.keys()}
    body = {"socid": 1, "type": 0, "date": 1795204968, "ref_ext": "svc:1", "lines": [line], **changes}
    return await sandbox.client.post(f"{API}/invoices", json=body, headers=accounting_headers(sandbox, entity))


async def delete_invoice(sandbox: RunningSandbox, invoice_id: int = 1) -> None:
    """Delete a draft."""
    await sandbox.control(f"/accounting/invoices/{invoice_id}/delete")


async def list_invoices(sandbox: RunningSandbox) -> list[dict[str, Any]]:
    """Return the drafts, the oldest first."""
    invoices: list[dict[str, Any]] = (await sandbox.look("accounting"))["invoices"]
    return invoices[::-1]


async def list_operations(sandbox: RunningSandbox) -> list[str]:
    """Return what was asked, the oldest first."""
    return [call["operation"] for call in await sandbox.calls("accounting")]
