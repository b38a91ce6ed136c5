from django.apps import AppConfig


class InvocationsConfig(AppConfig):
    name = "invocations"
