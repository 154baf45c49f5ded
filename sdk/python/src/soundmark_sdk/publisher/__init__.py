"""A publisher's backend: lets in receivers whose person agreed, signs their events and forwards them to Audience.

`Backend` is the reference, an ASGI application of its own; `AsyncPublisher` and `Publisher` are the part that signs and
forwards, for a backend that exists already; `ReportingTokens` issues and judges what receivers report with.
"""

from soundmark_sdk.delivering import DeliveryLimits as DeliveryLimits
from soundmark_sdk.delivering import Outcome as Outcome
from soundmark_sdk.failures import DeliveryFailure as DeliveryFailure
from soundmark_sdk.measuring import Consent as Consent
from soundmark_sdk.publisher.backend import Backend as Backend
from soundmark_sdk.publisher.configuration import from_environment as from_environment
from soundmark_sdk.publisher.forwarding import AsyncPublisher as AsyncPublisher
from soundmark_sdk.publisher.forwarding import Publisher as Publisher
from soundmark_sdk.publisher.tokens import ReportingTokens as ReportingTokens
from soundmark_sdk.publisher.tokens import SessionRefused as SessionRefused
