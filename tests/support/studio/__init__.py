"""Stand-ins for what the tools of the studio use."""
