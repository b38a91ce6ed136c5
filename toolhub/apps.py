import gc

from django.apps import AppConfig


class ToolhubConfig(AppConfig):
    name = "toolhub"

    def ready(self) -> None:
        # They register themselves; models load only after the apps.
        import toolhub.database.post_migration  # noqa: PLC0415
        import toolhub.startup  # noqa: F401, PLC0415

        gc.freeze()
        # A request makes thousands of objects, and reference counts end nearly all of them. To look at them every 700 is felt in the
        # slowest requests.
        gc.set_threshold(10_000, 20, 10)
        gc.enable()
