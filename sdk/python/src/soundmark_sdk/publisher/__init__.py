"""The publisher's backend: admit receivers whose person agreed, sign their events and forward them to Audience.

`Backend` is the reference implementation, an ASGI application. `AsyncPublisher` and `Publisher` only sign and forward,
for a backend of your own. `ReportingTokens` issues and checks the tokens that receivers report with. `WebPages` lets
pages in a browser report to a `Backend`.
"""

from soundmark_sdk.delivery import DeliveryLimits as DeliveryLimits
from soundmark_sdk.delivery import Outcome as Outcome
from soundmark_sdk.failures import DeliveryFailure as DeliveryFailure
from soundmark_sdk.measuring import Consent as Consent
from soundmark_sdk.publisher._async.publisher import AsyncPublisher as AsyncPublisher
from soundmark_sdk.publisher._sync.publisher import Publisher as Publisher
from soundmark_sdk.publisher.backend import Backend as Backend
from soundmark_sdk.publisher.configuration import from_environment as from_environment
from soundmark_sdk.publisher.tokens import ReportingTokens as ReportingTokens
from soundmark_sdk.publisher.tokens import SessionRefused as SessionRefused
from soundmark_sdk.publisher.web_pages import WebPages as WebPages
