"""Stand-ins of the outside systems: card provider, local provider, accounting system and support desk.

They run in one process on a loopback port, keep everything in memory, and behave as the real systems are known to. A
person clicks through their pages, a test drives them over `/control`. Only the command line imports this package, and
it imports only the kit.
"""
