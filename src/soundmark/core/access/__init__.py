"""Who may do what: credentials, the policy table, and the one function that opens a tenant."""
