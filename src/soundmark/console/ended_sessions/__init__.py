"""The list of sessions that ended before their time, which all processes of the console share."""
