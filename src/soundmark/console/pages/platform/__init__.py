"""The pages of platform administrators: settings, the catalogue, and the readiness of the SDK's release."""
