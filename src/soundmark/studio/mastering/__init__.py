"""`soundmark mix` and `soundmark scan`: a Code into a programme, and a finished master heard and certified.

Pure parts over `soundmark.audio.synthesis` and the SDK's hearing, without a network.
"""
