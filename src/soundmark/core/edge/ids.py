"""Ids as callers send them, for bodies and parameters; without the framework, because the worker reads them too."""

from typing import Annotated

from pydantic import AfterValidator, Field

from soundmark.kit.text.ids import parse_id

# A text that no id can be becomes one that is not found.
UnboundedId = Annotated[str, AfterValidator(parse_id)]
ResourceId = Annotated[str, Field(max_length=160), AfterValidator(parse_id)]
