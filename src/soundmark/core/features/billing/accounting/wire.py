"""Shapes of the accounting system's customers."""

from typing import Annotated

from pydantic import ConfigDict, Field

from soundmark.wire.shape import Wire

THIRDPARTY_ID_MAX = 2**31 - 1  # The accounting system keeps its ids in 32-bit columns.


class PutAccountingCustomer(Wire):
    """The third party to which an organisation's invoices are addressed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"thirdparty_id": 17}]})

    thirdparty_id: Annotated[
        int,
        Field(
            ge=1,
            le=THIRDPARTY_ID_MAX,
            description="The third party's id in the accounting system, where it exists already.",
        ),
    ]
