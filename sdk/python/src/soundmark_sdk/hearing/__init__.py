"""Hear broadcast frames in sound. docs/sound-decoder.md describes the decoder for every language."""

from soundmark_sdk.hearing.listening import Frame as Frame
from soundmark_sdk.hearing.listening import Listener as Listener
from soundmark_sdk.hearing.listening import convert_to_mono_float as convert_to_mono_float
from soundmark_sdk.hearing.listening import hear_samples as hear_samples
