"""The published contract: OpenAPI, JSON Schemas, problem catalogue and their examples."""
