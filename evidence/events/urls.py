"""Console addresses of event sinks."""

from django.urls import path

from evidence.events import views

urlpatterns = [
    path("evidence/sinks", views.sinks, name="sinks"),
    path("evidence/sinks/new", views.sink_new, name="sink_new"),
    path("evidence/sinks/<snk:sink_id>", views.sink, name="sink"),
    path("evidence/sinks/<snk:sink_id>/pause", views.sink_pause, name="sink_pause"),
    path("evidence/sinks/<snk:sink_id>/resume", views.sink_resume, name="sink_resume"),
    path("evidence/sinks/<snk:sink_id>/test", views.sink_test, name="sink_test"),
    path("evidence/sinks/<snk:sink_id>/rotate", views.sink_rotate, name="sink_rotate"),
    path("evidence/sinks/<snk:sink_id>/end", views.sink_end, name="sink_end"),
]
