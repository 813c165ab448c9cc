"""docs/walkthrough.md as its reader does it: the service and two people in a shell of this host, the hub in the machine."""

import os
import re
import socket
import subprocess
import tempfile
import threading
import time

from vm import PROJECT, WITH_US, Failure, Radio, until

PAGE = os.path.join(PROJECT, "docs/walkthrough.md")
LAMP, OTHER = "C0:00:00:00:30:01", "C0:00:00:00:30:02"
# As the machine reaches this host.
HOST = "10.0.2.2"
BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
END = "--- end of the block"
BLOCK_S = 600
# As the page asks of whoever takes longer than a token lasts. A block may take up to BLOCK_S more.
SIGN_IN = """
SUPPLIER_TOKEN=$(send $URL/auth/login -d '{"email":"sam@lamps.example","password":"a long password of Sam"}' | jq -r .data.accessToken)
PERSON_TOKEN=$(send $URL/auth/login -d '{"email":"pia@home.example","password":"a long password of Pia"}' | jq -r .data.accessToken)
"""
SIGN_IN_AFTER_S = 240


def payload(company, data):
    return (bytes([2, 1, 6, len(data) + 3, 0xFF]) + company.to_bytes(2, "little") + data).hex()


def adverts():
    """The lamp of the page, and a device that always has something new to say."""
    return [{"address": LAMP, "rssi": -50, "every_ms": 300, "data": payload(0xFFFF, bytes.fromhex("290964")), "lamp": True},
            {"address": OTHER, "rssi": -60, "every_ms": 1000, "data": payload(0x04FF, bytes(4)), "counter": True}]


class Terminal:
    """A shell that runs block after block, and ends at the first command that fails."""

    def __init__(self, programs, home):
        self.complaints = os.path.join(home, "stderr")
        path = f"{os.path.realpath(programs)}:{os.environ['PATH']}"
        with open(self.complaints, "wb") as stderr:
            self.shell = subprocess.Popen(WITH_US + ["bash", "-eu", "-o", "pipefail"], cwd=PROJECT, env={**os.environ, "HOME": home, "PATH": path},
                                          text=True, start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)

    def run(self, block):
        """What it prints to standard output."""
        late = threading.Timer(BLOCK_S, self.shell.kill)
        late.start()
        try:
            self.shell.stdin.write(f"{block}\necho '{END}'\n")
            self.shell.stdin.flush()
            printed = ""
            for line in self.shell.stdout:
                if line == END + "\n":
                    return printed
                printed += line
            with open(self.complaints, encoding="utf-8") as stderr:
                raise Failure(f"the block failed, or took more than {BLOCK_S} s:\n{block}\nIt printed:\n{printed}{stderr.read()[-2000:]}")
        finally:
            late.cancel()

    def close(self):
        try:
            os.killpg(self.shell.pid, 9)
        except ProcessLookupError:
            pass
        self.shell.wait()


def the_walkthrough(stage):
    """From a supplier's device to a person who dims it, consents and leaves: every block of the page, in order, prints what the page says."""
    with socket.create_server(("0.0.0.0", 0)) as probe:
        port = str(probe.getsockname()[1])
    with open(PAGE, encoding="utf-8") as page:
        blocks = BLOCK.findall(page.read().replace("192.0.2.10", HOST).replace("8080", port))
    stage.vm.run("dpkg --purge hub-agent", timeout_s=120)
    with tempfile.TemporaryDirectory(prefix="hub-walkthrough-") as home, Radio(stage.vm, adverts()) as radio:
        terminal = Terminal(stage.more["programs"], home)
        printed = ""
        signed_in_at = None
        try:
            for block, expected in blocks:
                if block.startswith("# on the hub"):
                    # The page has the reader paste the last line.
                    given = printed.splitlines()[-1]
                    stage.vm.sh(f"cd /mnt/share; {given}\nset -e\n{block}", timeout_s=300)
                else:
                    if signed_in_at and time.monotonic() - signed_in_at > SIGN_IN_AFTER_S:
                        terminal.run(SIGN_IN)
                        signed_in_at = time.monotonic()
                    printed = terminal.run(block)
                    if "PERSON_TOKEN=" in block:
                        signed_in_at = time.monotonic()
                    if expected and printed != expected:
                        raise Failure(f"the page says\n{expected}and this was printed\n{printed}by\n{block}")
                if "COMMAND=" in block:
                    until("the lamp to have been dimmed", lambda: radio.status()["lamp"]["written"] == ["012a"], 60)
                if "installed-apps" in block:
                    until("the app to run", lambda: "active" in stage.vm.run("systemctl is-active 'hub-app-*'")[1].split(), 60, 1)
            if len(blocks) < 15:
                raise Failure(f"only {len(blocks)} blocks were found in the page")
        finally:
            terminal.close()
            stage.vm.run("dpkg --purge hub-agent", timeout_s=120)


WALKTHROUGH_SCENARIOS = [the_walkthrough]
