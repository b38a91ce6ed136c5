"""Model providers: whom a tenant has connected to answer models' calls, and which of their models."""
