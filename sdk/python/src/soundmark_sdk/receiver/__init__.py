"""The receiver: resolve and verify what was heard, measure it with consent, and report it to the publisher."""

from soundmark_sdk.measuring import measure as measure
from soundmark_sdk.receiver._async.receiver import AsyncReceiver as AsyncReceiver
from soundmark_sdk.receiver._async.reporter import AsyncReporter as AsyncReporter
from soundmark_sdk.receiver._sync.receiver import Receiver as Receiver
from soundmark_sdk.receiver._sync.reporter import Reporter as Reporter
