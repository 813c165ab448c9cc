"""What the package, the apps and the agent's own updates have to do on a real systemd, whatever goes wrong."""

import os
import random
import shutil
import tempfile
import time

from fleet import OVER, UNIT
from vm import Failure, Radio, until

# Says which version it is, and keeps what it hears.
LOGGER = """echo {version} >"$STATE_DIRECTORY/version"
exec python3 -c 'import os, socket
hears = socket.socket(socket.AF_UNIX)
hears.connect(os.environ["HUB_BLE_SOCKET"])
with open(os.environ["STATE_DIRECTORY"] + "/heard", "ab", 0) as file:
    for line in hears.makefile("rb"):
        file.write(line)'
"""
SLEEPER = 'echo {version} >"$STATE_DIRECTORY/version"\nexec sleep 1000000\n'
# Never reports that it is ready.
HANGS = b"#!/bin/sh\nexec sleep 1000000\n"
# Starts, listens, and finds no service.
LOST = b'#!/bin/sh\nexec /usr/bin/hub-agent "$@" --service-url http://10.0.2.2:9\n'


def expect(condition, what):
    if not condition:
        raise Failure(what)


def advert(address):
    """Flags, then four counting bytes of company 0x04ff."""
    return {"address": address, "rssi": -60, "data": "020106" + "09ffff046e3d" + "00000000", "every_ms": 200, "counter": True}


def sleeper(hub, version, **more):
    return hub.releases.logger(version, SLEEPER.format(version=version), keepsFiles=True, **more)


def app_version(hub):
    return hub.vm.run(f"cat /var/lib/hub-app-{hub.releases.app}/version")[1].strip()


def user_of_app(hub):
    """The id of the user that systemd has made for the app: its name says nothing of the app."""
    return hub.vm.sh(f"ps -o uid= -p $(systemctl show -p MainPID --value {hub.app_unit()})").strip()


def traces_of_app(hub, user):
    """Files and units that name the app, its user, and processes of that user's."""
    app = hub.releases.app
    return hub.vm.run(f"find /etc /run /usr /var -name '*{app}*' -not -path '/var/log/*'; systemctl list-units --all --plain --no-legend '*{app}*'; "
                      f"systemctl list-unit-files --no-legend '*{app}*'; getent passwd {user}; ls -d /run/systemd/dynamic-uid/{user} 2>/dev/null; "
                      f"pgrep -a -U {user}; ls -A /var/lib/hub-agent/downloads 2>/dev/null")[1].strip()


def app_comes_and_goes(stage):
    """One call of the API installs an app, which hears what the hub hears; a second version replaces it; one that crashes is swapped
    back and reported, and is not tried again; removal leaves no file, unit or user."""
    hub, address = stage.hub(), "C0:00:00:00:20:01"
    job = hub.install(hub.releases.logger("1.0.0", LOGGER.format(version="1.0.0"), keepsFiles=True, ble=True))
    hub.ended(job, "SUCCEEDED")
    expect(hub.app_runs() and app_version(hub) == "1.0.0", "the app was installed and does not run")
    user = hub.vm.sh(f"ps -o user= -p $(systemctl show -p MainPID --value {hub.app_unit()})")
    expect(user.startswith("hub-app") or user.isdigit(), f"the app runs as {user}")
    with Radio(hub.vm, [advert(address)]):
        heard = f"/var/lib/hub-app-{hub.releases.app}/heard"
        until("the app to hear what the hub hears", lambda: address in hub.vm.run(f"tail -n 5 {heard}")[1].upper(), 90, 1)
    hub.ended(hub.install(sleeper(hub, "2.0.0")), "SUCCEEDED")
    expect(hub.app_runs() and app_version(hub) == "2.0.0", "the second version does not run")
    expect(hub.vm.run(f"test -s {heard}")[0] == 0, "what the app kept did not outlive the update")
    until("the hub to report the second version", lambda: (hub.reported() or {}).get("version") == "2.0.0", 60, 1)
    crashes = hub.releases.logger("3.0.0", "exit 1\n", keepsFiles=True)
    hub.ended(hub.install(crashes), "FAILED", "HEALTH_CHECK_FAILED")
    expect(hub.app_runs() and app_version(hub) == "2.0.0", "the version before was not put back")
    until("the hub to report it", lambda: (now := hub.reported()) and now["version"] == "2.0.0" and now["state"] == "RUNNING", 60, 1)
    hub.ended(hub.install(crashes), "FAILED", "FAILED_BEFORE")
    hub.ended(hub.install(crashes, force=True), "FAILED", "HEALTH_CHECK_FAILED")
    user = user_of_app(hub)
    expect(hub.vm.run(f"test -e /run/systemd/dynamic-uid/{user}")[0] == 0, f"the app's user {user} is none of systemd's")
    hub.ended(hub.remove(), "SUCCEEDED")
    expect(not traces_of_app(hub, user), f"removal left this: {traces_of_app(hub, user)}")
    until("the hub to report that it is gone", lambda: hub.reported() is None, 60, 1)


def agent_updates_itself(stage):
    """By a job, and by policy; the new version stays after a restart, and the hub does not go back to one that was signed before it."""
    hub = stage.hub()
    with Radio(hub.vm, [advert("C0:00:00:00:21:01")]):
        older, newer = hub.releases.agent("0.1.1"), hub.releases.agent("0.1.2")
        hub.ended(hub.update(newer), "SUCCEEDED")
        hub.runs("0.1.2")
        hub.vm.sh(f"systemctl restart {UNIT}", timeout_s=100)
        hub.runs("0.1.2")
        hub.ended(hub.update(older), "FAILED", "COUNTER_TOO_LOW")
        hub.runs("0.1.2")
        hub.releases.agent("0.1.3", channel="vm")
        policy = hub.cloud.call("PUT", "/tenant/agent-update-policies", {"scope": "HUB", "hubUuid": hub.uuid, "channel": "vm"})["policyUuid"]
        try:
            job = until("the policy to make a job", lambda: next((j for j in hub.jobs() if j["policyUuid"] == policy), None), 120, 1)
            hub.ended(job["hubJobUuid"], "SUCCEEDED")
            hub.runs("0.1.3")
        finally:
            hub.cloud.call("DELETE", f"/tenant/agent-update-policies/{policy}")


def bad_updates_change_nothing(stage):
    """Each of them ends with the version before running and the job FAILED for its reason."""
    hub, releases = stage.hub(), stage.releases()
    before = hub.version()
    expect(before, "the agent does not tell its version")
    spoiled = releases.agent("0.2.1")
    releases.spoil(spoiled)
    cases = [
        ("a build that does not start", releases.agent("0.2.2", content=b"\x7fELF and nothing else"), "DID_NOT_START"),
        ("a build that ends at once", releases.agent("0.2.3", content=b"#!/bin/sh\nexit 1\n"), "DID_NOT_START"),
        ("a build that hangs at its start", releases.agent("0.2.6", content=HANGS), "NOT_CONFIRMED"),
        ("a build that does not reach the service", releases.agent("0.2.4", content=LOST), "NOT_CONFIRMED"),
        ("a key the hub does not know", releases.agent("0.2.5", key="foreign"), "BAD_SIGNATURE"),
        ("a file that is not what was signed", spoiled, "DIGEST_MISMATCH"),
    ]
    with Radio(hub.vm, [advert("C0:00:00:00:22:01")]):
        for what, release, reason in cases:
            try:
                hub.ended(hub.update(release), "FAILED", reason)
                hub.runs(before)
            except Failure as failure:
                raise Failure(f"{what}: {failure}") from None


def cut_downloads_go_on(stage):
    """A line that is cut again and again only costs time; one that never gets through ends the job before its deadline, with the reason."""
    hub, line = stage.hub(), stage.line()
    with Radio(hub.vm, [advert("C0:00:00:00:23:01")]):
        update = hub.releases.agent("0.3.1")
        line.cut(5, 1 << 20)
        hub.ended(hub.update(update), "SUCCEEDED")
        expect(line.cuts_made == 5, f"the line was cut {line.cuts_made} times")
        hub.runs("0.3.1")
        never = hub.releases.agent("0.3.2")
        line.cut(1_000_000, 1 << 16)
        try:
            hub.ended(hub.update(never, validForSeconds=60), "FAILED", "DOWNLOAD_FAILED", 240)
            expect(line.cuts_made > 1, "it was not tried again")
        finally:
            line.cut(0, 0)
        hub.runs("0.3.1")


def purge_leaves_nothing(stage):
    """On a machine of its own, with an app and an update of the agent: removal stops everything and keeps settings and state, the package
    put back goes on, purge leaves no file, unit, process or user."""
    everything = ("find / -xdev \\( -path /var/log -o -path /tmp -o -path /var/tmp -o -path /var/lib/dpkg -o -path /var/lib/systemd "
                  "-o -path /var/cache -o -path /root \\) -prune -o -print; ls -d /run/*hub* 2>/dev/null; ls /var/lib/systemd/deb-systemd-helper-*")
    vm = stage.boot()
    try:
        before = set(vm.run(everything, timeout_s=120)[1].splitlines())
        own = stage.on(vm)
        own.install(**{"device-instance-id": "purged"})
        hub = own.hub()
        hub.ended(hub.install(sleeper(hub, "4.0.0")), "SUCCEEDED")
        hub.ended(hub.update(hub.releases.agent("0.4.1")), "SUCCEEDED")
        hub.runs("0.4.1")
        vm.sh("dpkg --remove hub-agent", timeout_s=180)
        running = vm.run("systemctl list-units --plain --no-legend --state=active,activating,failed 'hub-a*'; pgrep -u hub-agent -a")[1].strip()
        expect(not running, f"removed, and still there: {running}")
        expect(vm.run("grep -q service-url /etc/hub-agent/config.toml && test -s /var/lib/hub-agent/credentials.json")[0] == 0, "removal took settings or state")
        vm.sh("dpkg -i /mnt/share/hub-agent_*.deb", timeout_s=180)
        until("the app to run again", hub.app_runs, 60)
        until("the agent to run again", hub.active, 60)
        vm.sh(f"rm -r /etc/systemd/system/{UNIT}.d; dpkg --purge hub-agent", timeout_s=180)
        expect(vm.run("getent passwd | grep hub-; getent group | grep hub-; pgrep -a hub-")[1].strip() == "", "a user, group or process is left")
        left = sorted(path for path in set(vm.run(everything, timeout_s=120)[1].splitlines()) - before
                      if not (path.startswith("/etc/") and path.endswith("-")) and path not in ("/etc/.pwd.lock", "/var/lib/private"))
        expect(not left, "purge left " + " ".join(left))
    finally:
        vm.close()


def power_cut_jobs(stage):
    """A machine that keeps its disk loses power at random moments of installing an app and of updating itself: it always boots to an agent
    that works, and the job ends in a state that is true."""
    seed = int(time.time())
    chance = random.Random(seed)
    folder = tempfile.mkdtemp(prefix="hub-vm-root-")
    disk = os.path.join(folder, "root.ext4")
    vm = None
    try:
        shutil.copyfile(stage.more["disk"], disk)
        vm = stage.boot(root=disk)
        own = stage.on(vm)
        own.install(**{"device-instance-id": "cut-off"})
        hub = own.hub()
        # How long each takes without a power cut.
        usual_s, now = {}, {}
        for kind, version in (("app", "5.0.0"), ("agent", "0.5.0")):
            started = time.monotonic()
            hub.ended(power_cut_job(hub, kind, version), "SUCCEEDED")
            usual_s[kind], now[kind] = time.monotonic() - started, version
        results = {}
        for cut in range(stage.more["power_cuts"]):
            kind = ("app", "agent")[cut % 2]
            version = f"5.0.{cut + 1}" if kind == "app" else f"0.{6 + cut // 10}.{cut % 10}"
            job = power_cut_job(hub, kind, version)
            after_s = chance.uniform(0, usual_s[kind])
            time.sleep(after_s)
            vm.close()
            vm = hub.vm = stage.boot(root=disk)
            what = f"cut {cut + 1} (seed {seed}), {kind} {version} after {after_s:.1f} of {usual_s[kind]:.0f} s"
            try:
                found = until("the job to end", lambda: (state := hub.job(job))["status"] in OVER and state, 300, 1)
                expect(found["status"] in ("SUCCEEDED", "FAILED"), f"the job ended {found}")
                if found["status"] == "SUCCEEDED":
                    now[kind] = version
                hub.runs(now["agent"])
                until(f"the app to be version {now['app']}", lambda: hub.app_runs() and app_version(hub) == now["app"], 120, 1)
                until("the hub to report it", lambda: (hub.reported() or {}).get("version") == now["app"], 120, 1)
                expect(not hub.vm.run("systemctl list-units --failed --plain --no-legend 'hub-*'")[1].strip(), "a unit has failed")
            except Failure as failure:
                raise Failure(f"{what}: {failure}\n{hub.job_events(job)}\n{stage.journal(hub.vm)}") from None
            results[kind, found["status"]] = results.get((kind, found["status"]), 0) + 1
            print(f"       {what}: {found['status']}", flush=True)
        address = "C0:00:00:00:25:01"
        with Radio(hub.vm, [advert(address)]):
            own.heard(address)
        print("       " + ", ".join(f"{kind} {status} {count}" for (kind, status), count in sorted(results.items())), flush=True)
    finally:
        if vm:
            vm.close()
        shutil.rmtree(folder, ignore_errors=True)


def power_cut_job(hub, kind, version):
    return hub.install(sleeper(hub, version)) if kind == "app" else hub.update(hub.releases.agent(version))


FLEET_SCENARIOS = [app_comes_and_goes, agent_updates_itself, bad_updates_change_nothing, cut_downloads_go_on, purge_leaves_nothing, power_cut_jobs]
