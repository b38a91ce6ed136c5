"""Probe: asks a process of the hub on this host whether it lives (`healthz`) or can do its work (`readyz`), by the exit status.

    python -ISB toolhub/probes/client.py readyz 127.0.0.1:8001

For health checks that run every few seconds: standard library only, and nothing of the hub is loaded.
"""

import http.client
import sys

WITHIN_S = 4


def main(what: str, address: str) -> int:
    connection = http.client.HTTPConnection(address, timeout=WITHIN_S)
    try:
        connection.request("GET", f"/{what}")
        answer = connection.getresponse()
        sys.stdout.write(answer.read(2000).decode(errors="replace") + "\n")
    except (OSError, http.client.HTTPException) as error:
        sys.stdout.write(f"{address} does not answer: {error}\n")
        return 1
    return 0 if answer.status == 200 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
