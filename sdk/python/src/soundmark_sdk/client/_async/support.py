"""Support: the tickets of an organisation."""

from collections.abc import AsyncIterator

from soundmark_sdk.client._async.group import AsyncGroup
from soundmark_sdk.client.calls import PAGE_SIZE_MAX, Call, make_get, quote_id, write_body
from soundmark_sdk.client.records import ListedTicket, Page, Ticket
from soundmark_sdk.client.ticket_requests import choose_request_id

_PATH = "/v1/support/tickets"


class AsyncTickets(AsyncGroup):
    """The support tickets of an organisation. An API key may call none of these."""

    async def create(
        self, subject: str, message: str, *, request_id: str | None = None, organization_id: str | None = None
    ) -> Ticket:
        """Open a support ticket, under the caller's verified e-mail address.

        Retries of one call open one ticket. To open one ticket with several calls, pass the same `request_id`
        (`supreq_` and 16 to 64 characters): after a failure, the next call completes the ticket.
        """
        tenant = await self._sender.choose_organization(organization_id)
        body = write_body({"request_id": choose_request_id(request_id), "subject": subject, "message": message})
        return await self._sender.call(Ticket, Call("POST", _PATH, tenant, body, is_repeatable=True))

    async def reply(
        self, ticket_id: str, message: str, *, request_id: str | None = None, organization_id: str | None = None
    ) -> Ticket:
        """Add a message to a support ticket, and return the ticket with all its messages.

        It is one message for one `request_id`, as in `create`.
        """
        tenant = await self._sender.choose_organization(organization_id)
        body = write_body({"request_id": choose_request_id(request_id), "message": message})
        path = f"{_PATH}/{quote_id(ticket_id)}/messages"
        return await self._sender.call(Ticket, Call("POST", path, tenant, body, is_repeatable=True))

    async def get(self, ticket_id: str, *, organization_id: str | None = None) -> Ticket:
        """Return a support ticket with its messages and its current status."""
        tenant = await self._sender.choose_organization(organization_id)
        return await self._sender.call(Ticket, make_get(f"{_PATH}/{quote_id(ticket_id)}", **tenant))

    async def page(
        self, *, organization_id: str | None = None, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[ListedTicket]:
        """Return one page of an organisation's support tickets."""
        tenant = await self._sender.choose_organization(organization_id)
        return await self._sender.get_page(ListedTicket, make_get(_PATH, **tenant, limit=limit, cursor=cursor))

    async def list(
        self, *, organization_id: str | None = None, page_size: int = PAGE_SIZE_MAX
    ) -> AsyncIterator[ListedTicket]:
        """Yield every support ticket of an organisation."""
        tenant = await self._sender.choose_organization(organization_id)
        async for ticket in self._sender.iterate(ListedTicket, make_get(_PATH, **tenant, limit=page_size)):
            yield ticket
