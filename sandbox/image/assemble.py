"""Assembly: what a sandbox image holds. Runs while the image is built, inside the base, and copies only that.

The base may be the official Python image or an extracted Debian: whatever Python runs this file is the one that is
taken, with its standard library and the shared libraries that it needs. Nothing else comes along: no shell, no package
manager, no setuid file, nothing writable. The kinds ``browser``, ``node`` and ``git`` hold one program more, with what it needs.

    python3 -I -B assemble.py python /rootfs /build/toolhub
    python3 -I -B assemble.py browser /rootfs
"""

from __future__ import annotations

import compileall
import os
import py_compile
import shutil
import struct
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

# Not needed by a tool, large, or a way to install things.
LEFT_OUT = {
    "__pycache__",
    "config-*",
    "dist-packages",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "site-packages",
    "sitecustomize.py",
    "test",
    "tests",
    "tkinter",
    "turtle.py",
    "turtledemo",
    "venv",
}
# Loaded by name at run time, or expected by compiled wheels (manylinux) without being in the base's own needs.
EXTRA_LIBRARIES = (
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libnss_dns.so.2",
    "libnss_files.so.2",
    "libpthread.so.0",
    "libresolv.so.2",
    "librt.so.1",
    "libstdc++.so.6",
    "libutil.so.1",
)
# Chromium's store of certificates, opened by name, and the checksums that it looks for beside them.
BROWSER_LIBRARIES = (
    "libfreebl3.chk",
    "libfreebl3.so",
    "libfreeblpriv3.chk",
    "libfreeblpriv3.so",
    "libnssckbi.so",
    "libsoftokn3.chk",
    "libsoftokn3.so",
)
# Of Chromium's folder: drivers for graphics cards and their checks, and what only a window shows.
BROWSER_LEFT_OUT = ("chrome_*", "libVk*", "libvulkan*", "libvk_*", "vk_*", "locales", "resources.pak", "*.TOC")
CHROMIUM = Path("/usr/lib/chromium")
CERTUTIL = Path("/usr/bin/certutil")
NODE = Path("/usr/bin/node")
GIT = Path("/usr/bin/git")
GIT_TEMPLATES = Path("/usr/share/git-core/templates")
FONTS = Path("/usr/share/fonts")
FONTS_LEFT_OUT = ("X11",)
WHEELS = Path("/build/wheels")
PACKAGES = "usr/lib/toolhub/packages"  # beside the standard library on the path of every tool
PROGRAMS = Path("/build/programs")  # that are of none of Debian's packages
PASSWD = "root:x:0:0:root:/:/nonexistent\nnobody:x:65534:65534:nobody:/nonexistent:/nonexistent\n"
GROUP = "root:x:0:\nnogroup:x:65534:\n"
STABLE_PYTHON = "usr/local/bin/sandbox-python"


def read_loader(program: Path) -> str:
    """The dynamic loader that an ELF file names (PT_INTERP)."""
    data = program.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        raise SystemExit(f"{program} is not a 64-bit ELF file.")
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _flags, start, _virtual, _physical, length = struct.unpack_from("<IIQQQQ", data, offset + i * size)
        if kind == 3:
            return data[start : start + length].rstrip(b"\0").decode()
    raise SystemExit(f"{program} names no dynamic loader.")


def find_libraries(files: list[Path], loader: str) -> set[Path]:
    """Every shared library that loading these files brings in."""
    found = {Path(loader)}
    for file in files:
        listing = subprocess.run([loader, "--list", str(file)], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            words = line.split()
            if "not found" in line:
                raise SystemExit(f"{file} needs a library that the base does not have: {line.strip()}")
            path = words[2] if "=>" in words else words[0]
            if path.startswith("/"):
                found.add(Path(path))
    return found


def find_library(name: str, beside: set[Path]) -> Path:
    for directory in sorted({library.parent for library in beside} | {Path("/usr/lib"), Path("/lib")}):
        if (directory / name).exists():
            return directory / name
    raise SystemExit(f"The base has no {name}.")


class Image:
    """A root file system that is being filled. Links in directory names are resolved, so /lib and /usr/lib stay one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for link in ("bin", "lib", "lib64", "sbin"):
            if Path("/", link).is_symlink():
                (root / "usr" / link).mkdir(parents=True, exist_ok=True)
                (root / link).symlink_to(f"usr/{link}")

    def place(self, path: Path) -> Path:
        target = self.root / path.parent.resolve().relative_to("/") / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def add(self, path: Path) -> None:
        shutil.copyfile(path, target := self.place(path))
        target.chmod(0o555 if os.access(path, os.X_OK) else 0o444)

    def add_tree(self, path: Path, *left_out: str) -> None:
        shutil.copytree(
            path, self.place(path), symlinks=True, ignore=shutil.ignore_patterns(*left_out), dirs_exist_ok=True
        )

    def add_libraries(self, programs: list[Path], by_name: tuple[str, ...] = ()) -> None:
        """Whatever these programs load, and what they open by its name while they run."""
        loader = read_loader(programs[0])
        libraries = find_libraries(programs, loader)
        opened = {find_library(name, libraries) for name in by_name}
        libraries |= opened | find_libraries([file for file in opened if ".so" in file.name], loader)
        for library in sorted(libraries):
            self.add(library)

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)


def compile_tree(root: Path, directory: Path) -> None:
    """Compile once, never look at the sources again: a read-only image does not change."""
    done = compileall.compile_dir(
        directory,
        quiet=1,
        stripdir=str(root),
        prependdir="/",
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        workers=0,
    )
    if not done:
        raise SystemExit(f"Could not compile all of {directory}.")


def lock_down(root: Path) -> None:
    for directory, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(directory, name)
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & 0o555 | 0o444 | (0o111 if path.is_dir() else 0))


def add_python(image: Image) -> Path:
    """The Python that runs this, and what every tool may count on; returns the folder of its standard library."""
    python = Path(sys.executable).resolve()
    stdlib = Path(sysconfig.get_path("stdlib"))
    image.add(python)
    image.add_tree(stdlib, *LEFT_OUT)
    (image.root / STABLE_PYTHON).parent.mkdir(parents=True, exist_ok=True)
    (image.root / STABLE_PYTHON).symlink_to(python)
    image.add_libraries([python, *stdlib.glob("lib-dynload/*.so")], EXTRA_LIBRARIES)

    image.add_tree(Path("/usr/share/zoneinfo"), "posix", "right", "*.tab", "leap*")
    if (locale := Path("/usr/lib/locale/C.utf8")).is_dir():
        image.add_tree(locale)
    certificates = sorted(Path("/usr/share/ca-certificates/mozilla").glob("*.crt"))
    image.write("etc/ssl/certs/ca-certificates.crt", "".join(file.read_text() for file in certificates))
    image.write("etc/passwd", PASSWD)
    image.write("etc/group", GROUP)
    image.write("etc/nsswitch.conf", "hosts: files dns\n")
    return image.root / stdlib.resolve().relative_to("/")


def add_browser(image: Image) -> Path:
    """Chromium, fonts, its certificate store's tool, and Playwright, which drives it and brings Node.js; returns the folder of
    packages."""
    packages = image.root / PACKAGES
    for wheel in sorted(WHEELS.glob("*.whl")):
        unpack_wheel(wheel, packages)
    image.add_tree(CHROMIUM, *BROWSER_LEFT_OUT)
    image.add(CERTUTIL)
    programs = [CHROMIUM / "chromium-headless-shell", CERTUTIL, packages / "playwright/driver/node"]
    image.add_libraries(programs, BROWSER_LIBRARIES)
    for folder in (FONTS, Path("/etc/fonts"), Path("/usr/share/fontconfig")):
        image.add_tree(folder, *FONTS_LEFT_OUT)
    # For servers of packages of npm that drive the browser themselves.
    image.place(NODE).symlink_to(f"/{PACKAGES}/playwright/driver/node")
    return packages


def unpack_wheel(wheel: Path, place: Path) -> None:
    """A wheel is a zip that needs no more than this. Nothing of it is run, and nothing of it lies outside the place."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            written = Path(archive.extract(entry, place))
            if written.is_file():
                written.chmod(0o555 if entry.external_attr >> 16 & 0o111 else 0o444)


def add_node(image: Image) -> None:
    shutil.copyfile(PROGRAMS / NODE.name, target := image.place(NODE))
    target.chmod(0o555)
    image.add_libraries([PROGRAMS / NODE.name])


def add_git(image: Image) -> None:
    """The program, whose commands are in it but for those that ask another machine or are scripts of a shell."""
    image.add(GIT)
    image.add_tree(GIT_TEMPLATES, "hooks")
    image.add_libraries([GIT])


def assemble_image(kind: str, root: Path, toolhub: Path | None = None) -> None:
    """``toolhub``: our own part. Without it the image is the lower layer of others, which bring it."""
    image = Image(root)
    compiled = [add_python(image)]
    if kind == "browser":
        compiled.append(add_browser(image))
    elif kind == "node":
        add_node(image)
    elif kind == "git":
        add_git(image)
    # The official image keeps libpython outside the loader's own path; the cache makes it found.
    image.write("etc/ld.so.conf", "/usr/local/lib\n")
    subprocess.run([shutil.which("ldconfig", path="/usr/sbin:/sbin") or "ldconfig", "-r", str(root)], check=True)
    (root / "etc/ld.so.conf").unlink()

    if toolhub is not None:
        shutil.copytree(toolhub, root / "opt/toolhub")
        compiled.append(root / "opt/toolhub")
    for folder in ("w", "p", "c", "deps", "data", "proc", "sys", "dev"):  # where something is mounted
        (root / folder).mkdir()
    for place in compiled:
        compile_tree(root, place)
    lock_down(root)


if __name__ == "__main__":
    assemble_image(sys.argv[1], Path(sys.argv[2]), *map(Path, sys.argv[3:]))
