"""The virtual machine and the service, as a test sees them. Owns both processes and ends them with itself, however it ends."""

import contextlib
import itertools
import json
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.realpath(__file__))
PROJECT = os.path.realpath(os.path.join(HERE, "..", "..", ".."))
# Whatever happens to this process, what it started goes with it.
WITH_US = ["setpriv", "--pdeathsig", "KILL"]


# Times to wait are meant for a machine that boots in this long; on one that is slower or busier
# they are longer in proportion.
USUAL_BOOT_S = 20
patience = 1.0


class Failure(Exception):
    """What a scenario found wrong."""


def until(what, condition, timeout_s, every_s=0.3):
    """Polls `condition` until it is true and gives its value back; `what` says in the failure what did not come. Most of them run a
    program in an emulated machine, which has a third of its time for that: the rest is for what is waited for."""
    timeout_s *= patience
    deadline = time.monotonic() + timeout_s
    while True:
        asked = time.monotonic()
        value = condition()
        if value:
            return value
        answered = time.monotonic()
        if answered > deadline:
            raise Failure(f"waited {timeout_s:.0f} s in vain: {what}")
        time.sleep(max(every_s, 2 * (answered - asked)))


class Vm:
    """A booted machine. Its disk's changes are thrown away when it ends, unless `root` names a copy of the image to write to; those of
    the `disk` file, its second one, are kept."""

    def __init__(self, image, share, accelerator, console, disk=None, root=None):
        self.folder = tempfile.mkdtemp(prefix="hub-vm-")
        control = os.path.join(self.folder, "control")
        acceleration = {"kvm": ["-accel", "kvm", "-cpu", "host"], "tcg": ["-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max"]}
        self.process = subprocess.Popen(WITH_US + [
            "qemu-system-x86_64", "-M", "q35", *acceleration[accelerator], "-smp", "2", "-m", "768", "-nodefaults", "-no-reboot",
            "-display", "none", "-serial", "file:" + console,
            "-kernel", os.path.join(image, "vmlinuz"), "-initrd", os.path.join(image, "initrd.img"),
            # Emulated on a busy host, the timer may not tick in time for the kernel's check.
            "-append", "console=ttyS0 root=/dev/vda rw quiet no_timer_check systemd.show_status=0 panic=-1",
            "-drive", f"file={root},format=raw,if=virtio" if root else f"file={image}/root.ext4,format=raw,if=virtio,snapshot=on",
            *(["-drive", f"file={disk},format=raw,if=virtio"] if disk else []),
            "-virtfs", f"local,path={share},mount_tag=share,security_model=none,readonly=on,multidevs=remap",
            "-netdev", "user,id=net0", "-device", "virtio-net-pci,netdev=net0", "-device", "virtio-rng-pci",
            "-device", "virtio-serial-pci", "-chardev", f"socket,id=control,path={control},server=on,wait=off",
            "-device", "virtserialport,chardev=control,name=control",
        ], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.answers = {}
        self.ids = itertools.count(1)
        self.answers[0] = queue.Queue()
        self.socket = socket.socket(socket.AF_UNIX)
        until("qemu to start", lambda: self._connect(control), 20, 0.05)
        threading.Thread(target=self._listen, daemon=True).start()

    def _connect(self, path):
        if self.process.poll() is not None:
            raise Failure("qemu ended at once: " + self.process.stderr.read())
        try:
            self.socket.connect(path)
            return True
        except OSError:
            return False

    def _listen(self):
        try:
            for line in self.socket.makefile("rb"):
                answer = json.loads(line)
                self.answers[answer["id"]].put(answer)
        except OSError:
            pass  # the machine is gone: whoever waits for an answer runs out of time

    def booted(self, timeout_s):
        """Waits for the guest to take orders, and learns how fast it is."""
        global patience
        started = time.monotonic()
        try:
            self.answers[0].get(timeout=timeout_s)
            patience = max(patience, (time.monotonic() - started) / USUAL_BOOT_S)
            return True
        except queue.Empty:
            return False

    def run(self, command, stdin="", timeout_s=60):
        """Runs a shell command in the guest; (exit code, standard output, standard error)."""
        timeout_s *= patience
        number = next(self.ids)
        answer = self.answers[number] = queue.Queue()
        order = json.dumps({"id": number, "sh": command, "stdin": stdin, "timeout_s": timeout_s})
        self.socket.sendall(order.encode() + b"\n")
        try:
            reply = answer.get(timeout=timeout_s + 30)
        except queue.Empty:
            raise Failure(f"the guest gave no answer to: {command}") from None
        if reply["rc"] is None:
            raise Failure(f"took more than {timeout_s:.0f} s in the guest: {command}\n{reply['out']}")
        return reply["rc"], reply["out"], reply["err"]

    def sh(self, command, stdin="", timeout_s=60):
        """Runs a shell command that has to succeed; its standard output."""
        code, out, err = self.run(command, stdin, timeout_s)
        if code != 0:
            raise Failure(f"exit code {code} in the guest: {command}\n{out}{err}")
        return out.strip()

    def close(self):
        """Pulls the plug."""
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Radio:
    """A virtual controller in the guest that hears the adverts given. Used with `with`; plugged in when entered."""

    def __init__(self, vm, adverts, address="C4:11:22:33:44:55"):
        self.vm, self.adverts, self.address = vm, adverts, address
        self.unit = "radio-" + address[-2:]

    def hears(self, adverts):
        """From now on it hears these; those that it heard before go on where they were."""
        self.adverts = adverts
        file = f"/run/{self.unit}.adverts"
        self.vm.sh(f"cat >{file}.new; mv {file}.new {file}", stdin=json.dumps(adverts))

    def plug(self):
        # bluetoothd of a busy machine may miss a controller: it is then plugged in once more.
        for last in (False, True):
            self.hears(self.adverts)
            # A controller does not wait for a processor.
            self.vm.sh(f"rm -f /run/{self.unit}.json; systemd-run --quiet --collect --unit={self.unit} "
                       f"--property=CPUSchedulingPolicy=rr --property=CPUSchedulingPriority=1 python3 -B "
                       f"/mnt/share/guest-tools/radio.py /run/{self.unit}.adverts /run/{self.unit}.json --address {self.address}")
            try:
                return until("bluetoothd to show the controller", self.present, 30)
            except Failure as failure:
                status = self.vm.run("systemctl --no-pager status bluetooth; dmesg | grep -i bluetooth | tail")[1]
                self.unplug()
                if last:
                    raise Failure(f"{failure}\n{status}") from None

    def unplug(self):
        self.vm.run(f"systemctl kill -s KILL {self.unit}")
        until("bluetoothd to let go of the controller", lambda: not self.present(), 30)

    def present(self):
        return self.address in self.vm.run(f"timeout {5 * patience:.0f} bluetoothctl list")[1]

    def status(self):
        return json.loads(self.vm.sh(f"cat /run/{self.unit}.json"))

    def until_scanning(self, timeout_s=30):
        until("the kernel to scan", lambda: self.status()["scanning"], timeout_s)

    def __enter__(self):
        self.plug()
        return self

    def __exit__(self, *_):
        self.unplug()


@contextlib.contextmanager
def advertisement_monitors(vm):
    """bluetoothd with advertisement monitors, which lets the agent scan passively, until the block ends."""
    folder = "/run/systemd/system/bluetooth.service.d"
    vm.sh(f"mkdir -p {folder}; cat >{folder}/passive.conf; systemctl daemon-reload; systemctl restart bluetooth",
          stdin="[Service]\nExecStart=\nExecStart=/usr/libexec/bluetooth/bluetoothd --experimental\n")
    try:
        yield
    finally:
        vm.sh(f"rm {folder}/passive.conf; systemctl daemon-reload; systemctl restart bluetooth")


class Cloud:
    """hub-cloud on this host, with a fresh SQLite database, and one tenant on it."""

    PERSON = {"email": "vm@example.com", "password": "a long enough passphrase 17"}
    ADMIN = {"email": "admin@example.com", "password": "a long enough passphrase 18"}

    def __init__(self, binary, folder):
        self.folder = folder
        self.log_path = os.path.join(folder, "hub-cloud.log")
        data = ["--data-dir", os.path.join(folder, "hub-cloud")]
        self.release_keys = os.path.join(folder, "release-keys")
        for kind in ("agent", "app"):
            os.makedirs(os.path.join(self.release_keys, kind))
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(WITH_US + [
                binary, "serve", "--listen", "127.0.0.1:0", *data, "--upload-limit-per-minute", "100000"],
                env={**os.environ, "HUB_CLOUD_RELEASE_KEYS": self.release_keys}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        self.url = until("hub-cloud to listen", self._listening, 60)
        self.port = int(self.url.rpartition(":")[2])
        subprocess.run([binary, "admin", "create", "--email", self.ADMIN["email"], "--password-stdin", *data], input=self.ADMIN["password"],
                       text=True, check=True, stdout=subprocess.DEVNULL)
        self.sessions, self.tenant = {}, None
        self.request("POST", "/auth/register", self.PERSON, {})
        self.tenant = self.call("POST", "/tenant/tenants", {"name": "VM"})["tenantUuid"]

    def _listening(self):
        if self.process.poll() is not None:
            raise Failure("hub-cloud ended at once:\n" + self.log())
        found = re.search(r"listening on (http://[0-9.:]+)", self.log())
        return found and found[1]

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def token(self, person):
        """An access token: they last a quarter of an hour, and this one will for some minutes."""
        token, made_at = self.sessions.get(person["email"], (None, 0))
        if time.monotonic() - made_at > 600:
            token = self.request("POST", "/auth/login", person, {})["accessToken"]
            self.sessions[person["email"]] = token, time.monotonic()
        return token

    def headers(self, admin=False):
        headers = {"Authorization": "Bearer " + self.token(self.ADMIN if admin else self.PERSON)}
        return headers | ({"X-Tenant-UUID": self.tenant} if self.tenant and not admin else {})

    def call(self, method, path, body=None, admin=False):
        """As the tenant's owner, or as the platform's administrator."""
        return self.request(method, path, body, self.headers(admin))

    def follow(self, path):
        """A live stream's events as they come: the list grows until the service ends the stream."""
        response = urllib.request.urlopen(urllib.request.Request(self.url + path, headers=self.headers()), timeout=120)
        events = []

        def read():
            try:
                for line in response:
                    if line.startswith(b"data: "):
                        events.append(json.loads(line[6:]))
            except OSError:
                pass  # the service is gone, and nobody waits for more

        threading.Thread(target=read, daemon=True).start()
        return events

    def request(self, method, path, body, headers):
        request = urllib.request.Request(self.url + path, method=method, headers={**headers, "Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                text = response.read()
                return json.loads(text)["data"] if text else None
        except urllib.error.HTTPError as error:
            raise Failure(f"{method} {path}: {error.code} {error.read().decode(errors='replace')}") from None

    def claim_code(self, uses=1):
        return self.call("POST", "/tenant/hubs/claim-codes", {"maxUses": uses})["claimCode"]

    def events(self, address=None):
        """Every BLE event of the tenant, or those of one advertiser, oldest first."""
        found = {}  # by id: what arrives while we page moves the rest on, and an event is then seen on two pages
        for page in itertools.count(1):
            batch = self.call("GET", f"/tenant/ble/events?page={page}&size=100")
            found.update((event["bleEventId"], event) for event in batch)
            if len(batch) < 100:
                break
        return [found[i] for i in sorted(found) if address in (None, found[i]["address"])]

    def freeze(self):
        """Still there and silent, as a service behind a dead link is."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        self.thaw()
        self.process.terminate()
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
