"""What the agent has to do on a real systemd and a real bluetoothd. Each scenario leaves the machine as it found it."""

import base64
import json
import subprocess
import tempfile
import time

from command_scenarios import COMMAND_SCENARIOS
from device_scenarios import DEVICE_SCENARIOS
from exposure_scenarios import EXPOSURE_SCENARIOS
from fleet import Hub, Line, Releases
from fleet_scenarios import FLEET_SCENARIOS
from vm import Failure, Radio, advertisement_monitors, until
from walkthrough_scenarios import WALKTHROUGH_SCENARIOS

UNIT = "hub-agent.service"
# Flags, then manufacturer data of company 0x04ff; the bytes include what a careless path would
# change.
AWKWARD = bytes([0x00, 0xFF, 0x80, 0x7F, 0x0A, 0x0D, 0x22, 0x5C, 0xC3, 0x28])


def manufacturer(address, data, rssi=-57, **more):
    """An advert of manufacturer data under company 0x04ff."""
    payload = bytes([2, 1, 6, len(data) + 3, 0xFF, 0xFF, 0x04]) + data
    return {"address": address, "rssi": rssi, "data": payload.hex(), "every_ms": 200, **more}


def counting(address):
    """An advert no two of which are alike: the last four bytes count."""
    return manufacturer(address, b"n=" + bytes(4), counter=True)


def expect(condition, what):
    if not condition:
        raise Failure(what)


def value(event):
    """The bytes an event carries under company 0x04ff."""
    return base64.b64decode(event["manufacturerData"]["04ff"])


class Stage:
    """The machine, the service, and the agent installed on the one and claimed with the other."""

    def __init__(self, vm, cloud, boot, more=None):
        self.vm, self.cloud, self.boot = vm, cloud, boot
        # What several machines share: options, and what is created on first use.
        self.more = more if more is not None else {}

    def on(self, vm):
        """The same with another machine."""
        return Stage(vm, self.cloud, self.boot, self.more)

    def line(self):
        """The hubs' way to the service."""
        if "line" not in self.more:
            self.more["line"] = Line(self.cloud.port)
        return self.more["line"]

    def releases(self):
        if "releases" not in self.more:
            self.more["releases"] = Releases(self.cloud, self.more["programs"])
        return self.more["releases"]

    def install(self, **settings):
        """The package, and its settings: as an operator does it."""
        self.vm.sh("dpkg -i /mnt/share/hub-agent_*.deb", timeout_s=180)
        settings = {"service-url": f"http://10.0.2.2:{self.line().port}", "claim-code": self.cloud.claim_code(), **settings}
        self.vm.sh("cat >/etc/hub-agent/config.toml", stdin="".join(f"{k} = {json.dumps(v)}\n" for k, v in settings.items()))

    def ready(self):
        """Every scenario but the first finds the agent installed, claimed and running."""
        if self.vm.run(f"systemctl cat {UNIT}")[0] != 0:
            self.install()
        self.start()

    def hub(self):
        """The machine as a hub that takes releases; a version on trial has less time than usual to show itself."""
        self.ready()
        self.releases().trust(self.vm)
        trial = "/etc/systemd/system/hub-agent.service.d/trial.conf"
        if self.vm.run(f"test -e {trial}")[0] != 0:
            self.vm.sh(f"mkdir -p {trial.rpartition('/')[0]}; cat >{trial}; systemctl daemon-reload; systemctl restart {UNIT}",
                       stdin="[Service]\nEnvironment=HUB_AGENT_TRIAL_TIMEOUT_SECS=90\n", timeout_s=100)
        uuid = until("the hub to be claimed", lambda: self.agent_json("status")[1].get("hubUuid"), 90, 1)
        return Hub(self.vm, self.cloud, self.releases(), uuid)

    def start(self):
        self.vm.sh(f"systemctl start {UNIT}", timeout_s=100)

    def show(self, *properties):
        lines = self.vm.sh(f"systemctl show {UNIT} -p " + ",".join(properties)).splitlines()
        return dict(line.split("=", 1) for line in lines)

    def until_replaced(self, old_pid):
        def replaced():
            now = self.show("ActiveState", "MainPID")
            return now["ActiveState"] == "active" and now["MainPID"] not in ("0", old_pid)

        until("systemd to start it again", replaced, 90)

    def evidence(self):
        """What helps to understand a failure."""
        return self.journal(self.vm) + ("" if self.cloud is None else "hub-cloud:\n" + self.cloud.log()[-3000:])

    @staticmethod
    def journal(vm):
        said = vm.run("journalctl --no-pager -o short-monotonic -n 80 -u 'hub-*' -u bluetooth -u 'radio-*'")[1]
        return "\n".join(line[:300] for line in said.splitlines())

    def heard(self, address, after=0, timeout_s=60):
        """Waits until the service has more than `after` events of this advertiser; all of them."""
        def enough():
            events = self.cloud.events(address)
            return events if len(events) > after else None
        return until(f"the service to have more than {after} events of {address}", enough, timeout_s, 1)

    def agent_json(self, command):
        """A command of hub-agent that prints one JSON document: (exit code, document)."""
        code, out, err = self.vm.run(f"runuser -u hub-agent -- hub-agent {command} --json", timeout_s=90)
        try:
            return code, json.loads(out)
        except ValueError:
            raise Failure(f"hub-agent {command} --json printed no JSON: {out!r} {err!r}") from None


def stage_is_real(stage):
    """Without the agent: systemd is PID 1, bluetoothd runs, and hears what the virtual controller is given."""
    vm = stage.vm
    expect(vm.sh("cat /proc/1/comm") == "systemd", "systemd is not PID 1")
    with Radio(vm, [manufacturer("C0:00:00:00:0A:01", AWKWARD), counting("C0:00:00:00:0A:02")]) as radio:
        expect(vm.sh("systemctl is-active bluetooth") == "active", "bluetoothd is not running")
        vm.sh("bluetoothctl power on")
        vm.sh("systemd-run --quiet --collect --unit=scan bluetoothctl --timeout 60 scan on")
        radio.until_scanning()
        wanted = "a{qv} 1 1279 ay 10 " + " ".join(str(byte) for byte in AWKWARD)
        until("bluetoothd to show the bytes sent", lambda: vm.run(
            "busctl get-property org.bluez /org/bluez/hci0/dev_C0_00_00_00_0A_01 org.bluez.Device1 ManufacturerData")[1].strip() == wanted, 20)
        vm.sh("systemctl stop scan")


def unit_lives_as_shipped(stage):
    """Installed as a package: its own user, ready by notification, back after kill -9, a clean stop."""
    vm = stage.vm
    said = vm.sh("dpkg -i /mnt/share/hub-agent_*.deb", timeout_s=180)
    expect("service-url" in said, f"dpkg does not say what to do next: {said}")
    state = stage.show("UnitFileState", "ActiveState", "NRestarts")
    expect(state == {"UnitFileState": "enabled", "ActiveState": "inactive", "NRestarts": "0"}, f"installed, not yet configured: {state}")
    vm.sh("sed 's/^#\\([a-z-]* = \\)/\\1/' /usr/share/hub-agent/config.toml.example >/run/all.toml")
    code, _, err = vm.run("hub-agent status --config /run/all.toml --state-dir /run/none")
    expect(code == 1, f"the example configuration holds something the agent refuses: {err}")
    expect(vm.run(f"systemctl start {UNIT}")[0] != 0 and stage.show("ExecMainStatus", "NRestarts") == {"ExecMainStatus": "3", "NRestarts": "0"},
           "an agent without a service-url has to say so, once, and stay down")
    stage.install()
    expect(vm.sh("stat -c %U:%G:%a /etc/hub-agent/config.toml") == "root:hub-agent:640", "the configuration is open to others")
    with Radio(vm, [counting("C0:00:00:00:0D:01")]) as radio:
        stage.start()
        state = stage.show("ActiveState", "SubState", "Type", "WatchdogUSec", "MainPID", "NRestarts", "StatusText")
        expect(state["ActiveState"] == "active" and state["Type"] == "notify", f"not ready: {state}")
        expect(state["WatchdogUSec"] == "1min", f"the watchdog is off: {state}")
        expect(vm.sh(f"stat -c %U /proc/{state['MainPID']}") == "hub-agent", "it does not run as its own user")
        expect(vm.sh("stat -c %U:%a /var/lib/hub-agent") == "hub-agent:700", "its state is open to others")
        stage.heard("C0:00:00:00:0D:01", after=2, timeout_s=90)
        for _ in range(2):
            before = len(stage.cloud.events("C0:00:00:00:0D:01"))
            old = stage.show("MainPID")["MainPID"]
            vm.sh(f"kill -9 {old}")
            stage.until_replaced(old)
            stage.heard("C0:00:00:00:0D:01", after=before, timeout_s=90)
        expect(stage.show("NRestarts")["NRestarts"] == "2", "it was restarted more often than it was killed")
        values = [value(event) for event in stage.cloud.events("C0:00:00:00:0D:01")]
        expect(len(values) == len(set(values)), f"stored twice: {sorted(v for v in set(values) if values.count(v) > 1)}")
        numbers = [int.from_bytes(v[-4:], "big") for v in values]
        expect(max(numbers) < radio.status()["sent"]["C0:00:00:00:0D:01"], "an event was never on the air")
        a_hang_is_noticed(stage)
        vm.sh(f"systemctl stop {UNIT}", timeout_s=60)
        state = stage.show("ActiveState", "Result", "ExecMainStatus")
        expect(state == {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}, f"it did not stop cleanly: {state}")
        expect(vm.run("pgrep -u hub-agent")[0] == 1, "it left a process behind")
        stage.start()


def a_hang_is_noticed(stage):
    """A process that is stopped in its tracks misses systemd's watchdog, here a short one, and is replaced."""
    override = f"/run/systemd/system/{UNIT}.d/short.conf"
    stage.vm.sh(f"mkdir -p {override.rpartition('/')[0]}; cat >{override}; systemctl daemon-reload; systemctl restart {UNIT}",
                stdin="[Service]\nWatchdogSec=6\nTimeoutAbortSec=2\n", timeout_s=100)
    old = stage.show("MainPID")["MainPID"]
    stage.vm.sh(f"kill -STOP {old}")
    stage.until_replaced(old)
    expect("watchdog" in stage.vm.sh(f"journalctl -u {UNIT} -n 30 -o cat --no-pager").lower(), "it was replaced, but not by the watchdog")
    stage.vm.sh(f"rm {override}; systemctl daemon-reload; systemctl restart {UNIT}", timeout_s=100)


def service_unit_lives_as_shipped(stage):
    """hub-cloud under its own unit, sandbox and user: answers, is back after kill -9 with its data, stops cleanly."""
    vm, unit = stage.vm, "hub-cloud.service"
    vm.sh("dpkg -i /mnt/share/hub-cloud_*.deb", timeout_s=180)
    alive = "python3 -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:8080/readyz\")'"
    until("hub-cloud to be ready", lambda: vm.run(alive)[0] == 0, 60)
    expect(vm.sh("stat -c %U:%a /var/lib/hub-cloud") == "hub-cloud:700", "its data are open to others")
    key = vm.sh("sha256sum /var/lib/hub-cloud/master.key")
    vm.sh(f"systemctl kill -s KILL {unit}")
    until("systemd to start it again", lambda: vm.run(alive)[0] == 0, 60)
    expect(vm.sh(f"systemctl show {unit} -p NRestarts --value") == "1", "it was restarted more often than it was killed")
    expect(vm.sh("sha256sum /var/lib/hub-cloud/master.key") == key, "it made a new key over the old one")
    vm.sh(f"systemctl stop {unit}")
    expect(vm.sh(f"systemctl show {unit} -p ActiveState,Result,ExecMainStatus").split() == [
        "Result=success", "ExecMainStatus=0", "ActiveState=inactive"], "it did not stop cleanly")


def bytes_come_back(stage):
    """What was on the air is what the API gives back, byte for byte."""
    stage.ready()
    adverts = [
        manufacturer("C0:00:00:00:0B:01", AWKWARD, rssi=-57),
        manufacturer("C0:00:00:00:0B:02", b"\x01", rssi=-99),
        manufacturer("00:1B:DC:00:0B:03", bytes(range(24)), rssi=-1, address_type="public"),
        {"address": "C0:00:00:00:0B:04", "rssi": -70, "every_ms": 200, "data": "020106" + "0816d2fc" + "400001ff7f"},
        # Without flags: bluetoothd shows such a beacon only to clients that set a discovery filter.
        {"address": "C0:00:00:00:0B:06", "rssi": -70, "every_ms": 200, "data": "06fffe04beac01"},
        {"address": "C0:00:00:00:0B:05", "rssi": -70, "every_ms": 200, "data": "020106" + "0509" + "c3bc2d31"},
    ]
    with Radio(stage.vm, adverts):
        for advert, data in zip(adverts, (AWKWARD, b"\x01", bytes(range(24)))):
            event = stage.heard(advert["address"])[0]
            expect(value(event) == data, f"sent {data.hex()}, stored {event}")
            expect(event["rssi"] == advert["rssi"], f"heard at {advert['rssi']} dBm, stored {event}")
            expect(event["addressType"].lower() == advert.get("address_type", "random"), f"wrong address type: {event}")
        event = stage.heard("C0:00:00:00:0B:04")[0]
        expect(base64.b64decode(event["serviceData"]["fcd2"]).hex() == "400001ff7f", f"service data differs: {event}")
        event = stage.heard("C0:00:00:00:0B:06")[0]
        expect(base64.b64decode(event["manufacturerData"]["04fe"]).hex() == "beac01", f"a beacon without flags differs: {event}")
        event = stage.heard("C0:00:00:00:0B:05")[0]
        expect(event["name"] == "\u00fc-1", f"the name differs: {event}")


def btvirt_pair(stage):
    """Two controllers of BlueZ's own emulator: what `btmgmt add-adv` sends on one, the other hears. It gives no RSSI."""
    stage.ready()
    vm = stage.vm
    vm.sh("systemd-run --quiet --collect --unit=btvirt btvirt -l2")
    try:
        until("two controllers", lambda: len(vm.run("timeout 5 bluetoothctl list")[1].splitlines()) == 2, 30)
        index = vm.sh("ls /sys/class/bluetooth | sort -V | tail -1 | tr -dc 0-9")
        vm.sh(f"sleep 1 | btmgmt --index {index} power on")
        # btmgmt ends with its standard input, and with it the advertisement.
        vm.sh(f"systemd-run --quiet --collect --unit=advertiser sh -c 'sleep 600 | btmgmt --index {index} add-adv -c -d 0bff04ff{AWKWARD[:8].hex()} 1'")
        until("the service to have the advertised bytes", lambda: any(
            e.get("manufacturerData", {}).get("ff04") == base64.b64encode(AWKWARD[:8]).decode() for e in stage.cloud.events()), 90, 1)
    finally:
        vm.run("systemctl kill -s KILL advertiser; systemctl kill -s KILL btvirt")
        until("the controllers to be gone", lambda: not vm.run("timeout 5 bluetoothctl list")[1].strip(), 30)


def bluetoothd_restarts(stage):
    """The daemon goes away under the agent, once by order and once killed; the agent hears again without help."""
    stage.ready()
    address = "C0:00:00:00:0E:01"
    with Radio(stage.vm, [counting(address)]):
        stage.heard(address)
        pid = stage.show("MainPID")["MainPID"]
        for command in ("systemctl restart bluetooth", "systemctl kill -s KILL bluetooth; sleep 3; systemctl start bluetooth"):
            before = len(stage.heard(address))
            stage.vm.sh(command)
            stage.heard(address, after=before + 2, timeout_s=120)
        expect(stage.show("MainPID")["MainPID"] == pid, "the agent was restarted meanwhile")


def adapter_replugged(stage):
    """The controller is pulled out and put back; the second time another one has taken its number meanwhile."""
    stage.ready()
    address = "C0:00:00:00:0F:01"
    pid = stage.show("MainPID")["MainPID"]
    other = Radio(stage.vm, [], address="C4:11:22:33:44:66")
    with Radio(stage.vm, [counting(address)]) as radio:
        stage.heard(address)
        for renumbered in (False, True):
            radio.unplug()
            before = len(stage.cloud.events(address))
            if renumbered:
                other.plug()
            radio.plug()
            stage.heard(address, after=before + 2, timeout_s=120)
        other.unplug()
    expect(stage.show("MainPID")["MainPID"] == pid, "the agent was restarted meanwhile")


def passive_where_bluez_can(stage):
    """With advertisement monitors (bluetoothd --experimental) the agent only listens, without them it asks; it hears either way."""
    stage.ready()
    address = "C0:00:00:00:14:01"
    with Radio(stage.vm, [counting(address)]) as radio:
        stage.heard(address)
        expect(radio.status()["active"], "without monitors, the scan has to be an active one")
        with advertisement_monitors(stage.vm):
            until("the scan to be passive", lambda: radio.status()["scanning"] and not radio.status()["active"], 60)
            stage.heard(address, after=len(stage.cloud.events(address)) + 2)


def scan_tells_the_truth(stage):
    """`hub-agent scan`, by hand and beside the running agent: what is on the air, and why there is nothing when there is no adapter."""
    stage.ready()
    code, out, err = stage.vm.run("hub-agent scan --json --duration 20")
    expect(code == 1 and not out and "adapter" in err, f"without an adapter: exit code {code}, {out!r}, {err!r}")
    with Radio(stage.vm, [manufacturer("C0:00:00:00:12:01", AWKWARD, rssi=-66)]):
        lines = [json.loads(line) for line in stage.vm.sh("hub-agent scan --json --duration 8").splitlines()]
        expect(lines and all(line["address"] == "C0:00:00:00:12:01" for line in lines), f"scan printed {lines}")
        expect(value(lines[0]) == AWKWARD and lines[0]["rssi"] == -66, f"scan printed {lines[0]}")
        stage.heard("C0:00:00:00:12:01")


def check_tells_the_truth(stage):
    """`hub-agent check --json` finds the missing adapter, says how to mend it, and is content once there is one."""
    stage.ready()
    code, found = stage.agent_json("check")
    expect(code == 1, f"no adapter, and exit code {code}: {found}")
    with Radio(stage.vm, [counting("C0:00:00:00:13:01")]):
        # The agent powers the adapter on, and the helper starts when it is first called.
        until("check to be content", lambda: stage.agent_json("check")[0] == 0, 90, 1)


def power_cut(stage):
    """A machine of its own loses power while the service is out of reach: what was heard before is uploaded after the next boot."""
    address, cloud = "C0:00:00:00:11:01", stage.cloud
    with tempfile.NamedTemporaryFile(prefix="hub-vm-state-") as disk:
        disk.truncate(64 << 20)
        subprocess.run(["mke2fs", "-q", "-t", "ext4", disk.name], check=True)

        def machine_with_agent():
            own = stage.on(stage.boot(disk.name))
            own.vm.sh("mkdir -p /var/lib/hub-agent && mount /dev/vdb /var/lib/hub-agent")
            # Not the hub that the other machine is.
            own.install(**{"device-instance-id": "power-cut"})
            return own

        own = machine_with_agent()
        try:
            radio = Radio(own.vm, [counting(address)])
            radio.plug()
            own.start()
            own.heard(address)
            cloud.freeze()
            frozen_at = radio.status()["sent"][address]
            until("30 more adverts", lambda: radio.status()["sent"][address] > frozen_at + 30, 60)
            safe = radio.status()["sent"][address]
            time.sleep(5)  # the agent promises a commit within a second; emulation is slow
        finally:
            own.vm.close()
            cloud.thaw()
        before = {value(event) for event in cloud.events(address)}

        own = machine_with_agent()
        try:
            own.start()

            def numbers():
                return [int.from_bytes(value(e)[-4:], "big") for e in cloud.events(address)]

            until("the last advert before the cut to be uploaded", lambda: max(numbers()) >= safe - 2, 90, 1)
        finally:
            own.vm.close()
        after = numbers()
        expect(len(after) == len(set(after)), "an advert was stored twice")
        kept = [n for n in after if frozen_at <= n < safe]
        # bluetoothd may merge two adverts when it gets no time between them.
        expect(len(kept) >= 0.9 * (safe - frozen_at), f"{safe - frozen_at} were on the air before the cut, {len(kept)} came through: {sorted(kept)}")
        expect(len(before) < len(after), "nothing waited on disk, so nothing was proven")


# Scenarios of one group share a machine. The groups wait more than they compute.
GROUPS = {
    "agent": [stage_is_real, service_unit_lives_as_shipped, unit_lives_as_shipped, bytes_come_back, btvirt_pair, bluetoothd_restarts,
              adapter_replugged, passive_where_bluez_can, scan_tells_the_truth, check_tells_the_truth, power_cut],
    "releases": FLEET_SCENARIOS,
    "devices": DEVICE_SCENARIOS,
    "people": [*COMMAND_SCENARIOS, *EXPOSURE_SCENARIOS, *WALKTHROUGH_SCENARIOS],
}
SCENARIOS = [scenario for group in GROUPS.values() for scenario in group]
