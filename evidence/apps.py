"""Evidence app: what is registered when it is loaded."""

from django.apps import AppConfig


class EvidenceConfig(AppConfig):
    name = "evidence"

    def ready(self) -> None:
        import evidence.exports.erasure  # noqa: F401, PLC0415  says what exports keep of persons; models load only after the apps
        from evidence.archives.leaves import load_leaf  # noqa: PLC0415  the same
        from evidence.models.facts import ArchivableAttribute  # noqa: PLC0415  the same

        ArchivableAttribute.load_archived = load_leaf
