import os
import subprocess


def test_fw(served):
    d = subprocess.run(
        [os.environ["FWPY"], os.environ["FWPROG"], served.url, served.key],
        capture_output=True,
        text=True,
        cwd="/tmp/w/wires/c",
        env={"NO_PROXY": "*", "HOME": "/tmp/w/wires", "PATH": "/usr/bin:/bin", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        timeout=500,
    )
    print(d.stdout[-20000:])
    print(d.stderr[-3000:])
