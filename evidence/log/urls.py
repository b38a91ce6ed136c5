"""Addresses of log."""

from django.urls import path

from evidence.log import api

PAGES = [
    path("log/checkpoints/checkpoint", api.global_checkpoint, name="global_checkpoint"),
    path("log/checkpoints/vkeys", api.global_keys, name="global_keys"),
    path("log/checkpoints/tile/<path:tile>", api.global_tile, name="global_tile"),
]

API = [
    path("evidence/log", api.LogView.as_view(), name="api_log"),
    path("evidence/log/checkpoint", api.LogCheckpointView.as_view(), name="api_log_checkpoint"),
    path("evidence/log/tile/<path:tile>", api.LogTileView.as_view(), name="api_log_tile"),
    path("evidence/log/consistency", api.LogConsistencyView.as_view(), name="api_log_consistency"),
    path("evidence/log/anchor", api.LogAnchorView.as_view(), name="api_log_anchor"),
    path("evidence/facts/<fct:fact_id>/proof", api.FactProofView.as_view(), name="api_fact_proof"),
]

ACCESS = """
[api]

GET    api_log                  evidence:read
GET    api_log_checkpoint       evidence:read
GET    api_log_tile             evidence:read
GET    api_log_consistency      evidence:read
GET    api_log_anchor           evidence:read
GET    api_fact_proof           evidence:read
"""
