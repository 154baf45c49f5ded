"""Receive, resolve and verify XR Codes broadcast as sound."""

from soundmark_sdk.async_receiver import AsyncReceiver as AsyncReceiver
from soundmark_sdk.failures import KeyUnknown as KeyUnknown
from soundmark_sdk.failures import Reason as Reason
from soundmark_sdk.failures import ReceiverFailure as ReceiverFailure
from soundmark_sdk.hearing import Frame as Frame
from soundmark_sdk.hearing import Listener as Listener
from soundmark_sdk.hearing import hear_samples as hear_samples
from soundmark_sdk.keys import KeySet as KeySet
from soundmark_sdk.keys import read_key_set as read_key_set
from soundmark_sdk.microphone import Microphone as Microphone
from soundmark_sdk.microphone import MicrophoneUnavailable as MicrophoneUnavailable
from soundmark_sdk.microphone import listen as listen
from soundmark_sdk.receiver import Receiver as Receiver
from soundmark_sdk.recording import hear as hear
from soundmark_sdk.records import Intent as Intent
from soundmark_sdk.records import MeasurementProof as MeasurementProof
from soundmark_sdk.records import Policy as Policy
from soundmark_sdk.records import Resolution as Resolution
from soundmark_sdk.records import SignedCode as SignedCode
from soundmark_sdk.verification import verify_answer as verify_answer
from soundmark_sdk.verification import verify_signed_code as verify_signed_code
