"""`/control`: everything that a person or a test may do to the systems from outside.

A JSON body gets a JSON answer; a form of our pages gets a redirect to its field `back`.
"""
