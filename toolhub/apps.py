import gc

from django.apps import AppConfig


class ToolhubConfig(AppConfig):
    name = "toolhub"

    def ready(self) -> None:
        # They register themselves; models load only after the apps.
        import toolhub.database.post_migration  # noqa: PLC0415
        import toolhub.startup  # noqa: F401, PLC0415

        gc.freeze()
        gc.enable()
