from django.apps import AppConfig


class KernelConfig(AppConfig):
    name = "toolhub.kernel"
    label = "kernel"
