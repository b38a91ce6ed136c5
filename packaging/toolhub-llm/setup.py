"""Build: modules of llm and kernel under one name of our own, since both words are names of other people's distributions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py

KERNEL = {  # package: its modules that come along
    "toolhub_llm.kernel": {"__init__", "ids", "problems"},
    "toolhub_llm.kernel.http": {"__init__", "addresses"},
}
NAMES = {"llm": "toolhub_llm", "kernel": "toolhub_llm.kernel"}
IMPORT = re.compile(r"^(\s*(?:from|import) )(llm|kernel)(?=[. ])", re.MULTILINE)


class BuildRenamed(build_py):  # type: ignore[misc]  # setuptools has no types
    def find_package_modules(self, package: str, package_dir: str) -> list[Any]:
        found = super().find_package_modules(package, package_dir)
        return [each for each in found if package not in KERNEL or each[1] in KERNEL[package]]

    def build_module(self, module: str, module_file: str, package: str) -> Any:
        built = super().build_module(module, module_file, package)
        written = Path(built[0])
        text = written.read_text(encoding="utf-8")
        written.write_text(IMPORT.sub(lambda found: found[1] + NAMES[found[2]], text), encoding="utf-8")
        return built


setup(cmdclass={"build_py": BuildRenamed})
