"""The readiness of the receivers' SDK for its launch."""
