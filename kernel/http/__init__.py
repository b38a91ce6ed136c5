"""HTTP: limits of requests, middleware, endpoints, envelopes, problems as answers, and requests to others' servers."""
