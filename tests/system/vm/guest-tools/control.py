"""Runs in the virtual machine: carries out shell commands that arrive as JSON lines on a virtio port, several at once if need be.

In:  {"id": 1, "sh": "systemctl is-active bluetooth", "stdin": "", "timeout_s": 30}
Out: {"id": 1, "rc": 0, "out": "active\n", "err": ""}; rc is null when the time ran out.
"""

import json
import os
import subprocess
import threading

port = os.open("/dev/virtio-ports/control", os.O_RDWR)
one_line = threading.Lock()


def answer(reply):
    line = json.dumps(reply).encode() + b"\n"
    with one_line:
        while line:
            line = line[os.write(port, line):]


def carry_out(order):
    try:
        done = subprocess.run(["/bin/bash", "-c", order["sh"]], input=order.get("stdin", ""), capture_output=True,
                              timeout=order["timeout_s"], text=True, errors="replace")
        answer({"id": order["id"], "rc": done.returncode, "out": done.stdout, "err": done.stderr})
    except subprocess.TimeoutExpired as late:
        answer({"id": order["id"], "rc": None, "out": (late.stdout or b"").decode(errors="replace"), "err": "ran out of time"})


answer({"id": 0, "rc": 0, "out": "ready", "err": ""})
unread = b""
while chunk := os.read(port, 65536):
    *lines, unread = (unread + chunk).split(b"\n")
    for line in lines:
        threading.Thread(target=carry_out, args=(json.loads(line),), daemon=True).start()
