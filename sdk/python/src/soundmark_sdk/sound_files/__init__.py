"""The sound in files as they are found: streamed, joined, cut, tagged, or left behind by a recorder that crashed.

libsndfile decodes them. The modules here find each piece that it can decode and hand it over in a form that it reads.
"""
