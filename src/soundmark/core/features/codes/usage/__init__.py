"""An organisation's usage of its quotas."""
