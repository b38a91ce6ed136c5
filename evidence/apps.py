"""Evidence app: what is registered when it is loaded."""

from django.apps import AppConfig


class EvidenceConfig(AppConfig):
    name = "evidence"

    def ready(self) -> None:
        import evidence.exports.erasure  # noqa: F401, PLC0415  says what exports keep of persons; models load only after the apps
