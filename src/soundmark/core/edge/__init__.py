"""From a request to its caller and scope: what each operation declares, and how it is enforced."""
