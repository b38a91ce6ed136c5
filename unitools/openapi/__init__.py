"""OpenAPI: documents of HTTP services, and the operations that they describe."""
