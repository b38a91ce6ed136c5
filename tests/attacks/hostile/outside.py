"""Reach out of the box."""

from __future__ import annotations

import os
import socket
import urllib.request
from pathlib import Path

_FAR = ("169.254.169.254", "172.17.0.1", "127.0.0.1", "10.0.0.1", "192.0.2.1", "::1", "fd00:ec2::254")


def addresses() -> list[str]:
    got = []
    for address in _FAR:
        for port in (80, 2375, 8000, 53):
            try:
                socket.create_connection((address, port), 0.2).close()
            except OSError:
                continue
            got.append(f"{address}:{port}")
    return got


def names() -> list[str]:
    got = []
    for name in ("example.org", "metadata.google.internal", "host.docker.internal", "localhost"):
        try:
            got.append(str(socket.getaddrinfo(name, 80)[0][4]))
        except OSError:
            continue
        if name == "localhost":  # a name of the C library itself
            got.pop()
    return got


def datagrams() -> list[str]:
    got = []
    for address in ("169.254.169.254", "255.255.255.255", "224.0.0.1"):
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"x", (address, 53))
        except OSError:
            continue
        got.append(address)
    return got


def a_web_page() -> list[str]:
    try:
        with urllib.request.urlopen("http://169.254.169.254/latest/meta-data/", timeout=1) as answer:
            return [answer.read().decode()]
    except OSError:
        return []


def a_server_for_others() -> list[str]:
    try:
        socket.create_server(("0.0.0.0", 8080)).close()
    except OSError:
        return []
    return ["a server on every address"]


def links() -> list[str]:
    got = []
    for number, target in enumerate(("/etc/shadow", "/proc/1/root", "/proc/1/environ", "/", "../../../etc/passwd")):
        link = Path(f"/w/link-{number}")
        link.symlink_to(target)
        try:
            if os.listdir(link) if link.is_dir() else link.read_bytes():
                got.append(target)
        except OSError:
            continue
    return got


def the_engine() -> list[str]:
    got = []
    for path in (
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/.dockerenv",
        "/proc/1/cgroup",
    ):
        try:
            Path(path).read_bytes()
        except OSError:
            continue
        got.append(path)
    return got
