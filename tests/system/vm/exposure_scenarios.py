"""Vulnerabilities, from what a machine runs to evidence that others verify: of a package of Debian, of a component of an app, and of
one of the agent."""

import contextlib
import json
import os
import subprocess
import tempfile

from fleet import UNIT, command
from fleet_scenarios import advert, expect, sleeper
from vm import PROJECT, Failure, Radio, until

VERIFY = os.path.join(PROJECT, "tests/system/evidence/verify")
PACKAGE = "hub-vm-aged"
# What is exposed by one is not by the other.
OF_APP, OF_AGENT = "hub-vm-codec", "hub-vm-parser"
CHANNEL = "exposure"
# The agent looks for other packages every ten minutes.
OFTEN = """[Service]
ExecStart=
ExecStart=/usr/lib/hub-agent/hub-agent-launcher run --software-every 5s
"""
# The service notices an import within a minute, and the agent reports as soon as it has looked.
MATCHED_S = 150


def advisory(cve, ecosystem, package, fixed):
    """A record of OSV: the versions of a package before `fixed` are affected."""
    of_debian = ecosystem.startswith("Debian")
    return {"id": f"DEBIAN-{cve}" if of_debian else cve.replace("CVE", "RUSTSEC"), "upstream" if of_debian else "aliases": [cve],
            "summary": f"Something is wrong with {package}", "published": "2026-01-01T00:00:00Z", "modified": "2026-01-02T00:00:00Z",
            "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}],
            "affected": [{"package": {"ecosystem": ecosystem, "name": package},
                          "ranges": [{"type": "ECOSYSTEM" if of_debian else "SEMVER", "events": [{"introduced": "0"}, {"fixed": fixed}]}]}]}


def catalog(cve):
    """What CISA lists as exploited."""
    return {"catalogVersion": "2026.01.05", "dateReleased": "2026-01-05T12:00:00.000Z", "count": 1,
            "vulnerabilities": [{"cveID": cve, "dateAdded": "2026-01-05", "dueDate": "2026-01-26", "knownRansomwareCampaignUse": "Unknown"}]}


def import_feeds(stage, *feeds):
    """Beside the running service, as its operator does it."""
    with tempfile.TemporaryDirectory(prefix="hub-vm-feeds-") as folder:
        files = [os.path.join(folder, f"{number}.json") for number in range(len(feeds))]
        for path, feed in zip(files, feeds):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(feed, file)
        command(os.path.join(stage.more["programs"], "hub-cloud"), "vulnerabilities", "import", *files,
                "--data-dir", os.path.join(stage.cloud.folder, "hub-cloud"))


def sbom(*components):
    """A CycloneDX document of components of crates.io, each a name and a version."""
    described = [{"type": "library", "name": name, "version": version, "purl": f"pkg:cargo/{name}@{version}", "bom-ref": name}
                 for name, version in components]
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": described}


def listed(hub, cve):
    return next((one for one in hub.cloud.call("GET", f"/tenant/vulnerabilities?q={cve}") if one["id"] == cve), None)


def standing(hub, cve):
    """How the hub stands to a vulnerability; None while nothing is known to be affected."""
    hubs = hub.cloud.call("GET", f"/tenant/vulnerabilities/{cve}/hubs?size=100") if listed(hub, cve) else []
    return next((one for one in hubs if one["hubUuid"] == hub.uuid), None)


def until_it_is(hub, cve, status):
    def is_it():
        now = standing(hub, cve)
        return now if now and now["status"] == status else None

    return until(f"the hub to be {status} by {cve}", is_it, MATCHED_S, 1)


def installed(vm):
    """The packages of the machine by dpkg's own word: name, version and architecture."""
    lines = vm.sh("dpkg-query -W -f '${db:Status-Status}\\t${Package}\\t${Version}\\t${Architecture}\\n'").splitlines()
    return sorted(tuple(fields[1:]) for fields in (line.split("\t") for line in lines) if fields[0] == "installed")


def reported(hub):
    """The same as the service has them."""
    packages, page = [], 0
    while True:
        found = hub.cloud.call("GET", f"/tenant/hubs/{hub.uuid}/packages?page={page}&size=100")["packages"]
        packages += [(one["name"], one["version"], one["architecture"]) for one in found["content"]]
        if found["last"]:
            return sorted(packages)
        page += 1


def has_all_packages(hub):
    try:
        until("the service to have the packages of the machine", lambda: reported(hub) == installed(hub.vm), 60, 1)
    except Failure as failure:
        raise Failure(f"{failure}; these differ: {sorted(set(reported(hub)) ^ set(installed(hub.vm)))}") from None


def has_firmware(hub, radio):
    """What the kernel says of the firmware of an adapter reaches the service, with the address of the adapter."""
    folder = "/sys/kernel/debug/bluetooth/hci*"
    numbers = [int(hub.vm.sh(f"cat {folder}/{name}")) for name in ("hci_version", "hci_revision", "manufacturer")]
    expected = {radio.address: "HCI {}, revision {:#06x}, manufacturer {:#06x}".format(*numbers)}

    def reported_firmware():
        system = hub.cloud.call("GET", f"/tenant/hubs/{hub.uuid}/packages")["system"]
        return system and system["adapterFirmware"] == expected

    until(f"the service to have {expected}", reported_firmware, 60, 1)


def install_package(vm, version):
    control = f"Package: {PACKAGE}\nVersion: {version}\nArchitecture: all\nMaintainer: VM <vm@example.com>\nDescription: grows old\n"
    vm.sh(f"rm -rf /run/aged; mkdir -p /run/aged/DEBIAN; cat >/run/aged/DEBIAN/control; dpkg-deb -Znone --build /run/aged /run/aged.deb; "
          "dpkg -i /run/aged.deb", stdin=control, timeout_s=180)


@contextlib.contextmanager
def looking_often(vm):
    """The agent sees within seconds, not minutes, that packages have changed."""
    drop_in = f"/etc/systemd/system/{UNIT}.d/often.conf"
    restart = f"systemctl daemon-reload; systemctl restart {UNIT}"
    vm.sh(f"cat >{drop_in}; {restart}", stdin=OFTEN, timeout_s=100)
    try:
        yield
    finally:
        vm.sh(f"rm {drop_in}; {restart}", timeout_s=100)


class Auditor:
    """Somebody who has the evidence, the keys, and a library that is not the service's."""

    def __init__(self, stage):
        self.stage = stage
        environment = command(os.path.join(PROJECT, "tests/harness/venv"), os.path.dirname(VERIFY))
        self.python = os.path.join(environment.strip(), "bin/python")

    def hub(self, home, *words, stdin=""):
        cloud = self.stage.cloud
        done = subprocess.run([os.path.join(self.stage.more["programs"], "hub"), *words], input=stdin, capture_output=True, text=True,
                              env={"PATH": os.environ["PATH"], "HOME": home, "HUB_SERVICE_URL": cloud.url, "HUB_TENANT": cloud.tenant})
        expect(done.returncode == 0, f"hub {' '.join(words)}: {done.stdout}{done.stderr}")

    def verify(self, folder):
        return subprocess.run([self.python, VERIFY, folder], capture_output=True, text=True)

    def evidence(self, cve):
        """The lines of the evidence by their types, verified; with one byte changed, lines and signature are refused."""
        with tempfile.TemporaryDirectory(prefix="hub-vm-auditor-") as home:
            person, folder = self.stage.cloud.PERSON, os.path.join(home, "evidence")
            self.hub(home, "login", "--email", person["email"], "--password-stdin", stdin=person["password"] + "\n")
            self.hub(home, "vulnerabilities", "evidence", cve, "--out", folder)
            done = self.verify(folder)
            expect(done.returncode == 0, f"the evidence does not verify: {done.stdout}{done.stderr}")
            payload = json.loads(done.stdout)
            expect((payload["sub"], payload["vulnerabilityId"]) == (self.stage.cloud.tenant, cve), f"this was signed: {payload}")
            with open(os.path.join(folder, "evidence.ndjson"), encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
            for name in ("evidence.ndjson", "evidence.jws"):
                self.is_refused_when_changed(folder, name)
        return {kind: [line["data"] for line in lines if line["type"] == kind] for kind in ("head", "exposure", "fixed", "job")}

    def is_refused_when_changed(self, folder, name):
        with open(os.path.join(folder, name), "r+b") as file:
            content = file.read()
            # Of the signature, this is a letter of its payload.
            place = len(content) // 2
            changed = b"B" if content[place:place + 1] == b"A" else b"A"
            file.seek(place)
            file.write(changed)
            file.flush()
            done = self.verify(folder)
            file.seek(place)
            file.write(content[place:place + 1])
        expect(done.returncode == 1 and name in done.stderr, f"{name} with another byte: exit code {done.returncode}, {done.stdout}{done.stderr}")


def only_exposure(hub, evidence, ecosystem, name, version, fixed_in):
    """The one time in which the hub was exposed, which is over."""
    expect(len(evidence["exposure"]) == 1, f"one exposure was to be there: {evidence}")
    exposure = evidence["exposure"][0]
    said = {key: exposure[key] for key in ("hubUuid", "ecosystem", "name", "version", "fixedIn")}
    expect(said == {"hubUuid": hub.uuid, "ecosystem": ecosystem, "name": name, "version": version, "fixedIn": fixed_in}, f"the exposure is {exposure}")
    expect(exposure["until"] and exposure["from"] < exposure["until"], f"the exposure is to be over: {exposure}")
    return exposure


def old_package_is_found_and_fixed(stage):
    """All packages of the machine reach the service. An advisory that is imported beside it makes the hub exposed by an old one, and
    dpkg with a new one makes it fixed."""
    cve, auditor, hub = "CVE-2026-9101", Auditor(stage), stage.hub()
    with looking_often(hub.vm):
        try:
            install_package(hub.vm, "1.0-1")
            has_all_packages(hub)
            with Radio(hub.vm, [advert("C0:00:00:00:24:01")]) as radio:
                has_firmware(hub, radio)
            expect(standing(hub, cve) is None, "nothing is published, and the hub is exposed")
            import_feeds(stage, advisory(cve, "Debian:12", PACKAGE, "1.1-1"), catalog(cve))
            exposed = until_it_is(hub, cve, "EXPOSED")
            affected = [{"ecosystem": "Debian:12", "name": PACKAGE, "version": "1.0-1", "fixedIn": "1.1-1"}]
            expect(exposed["packages"] == affected, f"exposed by {exposed}")
            shown = listed(hub, cve)
            expect(shown["exploited"] and shown["severity"] == "CRITICAL" and shown["hubs"]["exposed"] == 1, f"it is listed as {shown}")
            until("the notice", lambda: any(one["type"] == "VULNERABILITY_FOUND" for one in stage.cloud.call("GET", "/me/notifications")), 90, 1)
            install_package(hub.vm, "1.1-1")
            fixed = until_it_is(hub, cve, "FIXED")
            has_all_packages(hub)
            evidence = auditor.evidence(cve)
            expect(evidence["head"][0]["exploitedSince"] == "2026-01-05", f"the head is {evidence['head']}")
            exposure = only_exposure(hub, evidence, "Debian:12", PACKAGE, "1.0-1", "1.1-1")
            expect((exposure["from"], exposure["until"]) == (exposed["since"], fixed["since"]), f"{exposure}, {exposed}, {fixed}")
            ends = [(one["hubUuid"], one["versions"], one["since"]) for one in evidence["fixed"]]
            expect(ends == [(hub.uuid, ["1.1-1"], fixed["since"])], f"fixed: {evidence['fixed']}")
        finally:
            hub.vm.run(f"dpkg --purge {PACKAGE}; rm -rf /run/aged /run/aged.deb", timeout_s=120)


def old_component_is_found_and_fixed(stage):
    """A release of an app that was signed with a bill of materials makes the hub exposed by a component, until a job has installed one
    without it."""
    cve, auditor, hub = "CVE-2026-9102", Auditor(stage), stage.hub()

    def release(version, component):
        return sleeper(hub, version, sbom=sbom((OF_APP, component)))

    hub.ended(hub.install(release("8.0.0", "0.14.9")), "SUCCEEDED")
    import_feeds(stage, advisory(cve, "crates.io", OF_APP, "0.14.10"))
    exposed = until_it_is(hub, cve, "EXPOSED")
    affected = [{"ecosystem": "crates.io", "name": OF_APP, "version": "0.14.9", "fixedIn": "0.14.10"}]
    expect(exposed["packages"] == affected, f"exposed by {exposed}")
    new = release("8.0.1", "0.14.10")
    job = hub.install(new)
    now = standing(hub, cve)
    expect(now["status"] == "UPDATING", f"the job is open, and the hub is {now}")
    hub.ended(job, "SUCCEEDED")
    fixed = until_it_is(hub, cve, "FIXED")
    evidence = auditor.evidence(cve)
    exposure = only_exposure(hub, evidence, "crates.io", OF_APP, "0.14.9", "0.14.10")
    expect((exposure["from"], exposure["until"]) == (exposed["since"], fixed["since"]), f"{exposure}, {exposed}, {fixed}")
    has_job(evidence, hubJobUuid=job, jobType="APP_INSTALL", appUuid=hub.releases.app, releaseUuid=new, version="8.0.1", policyUuid=None)
    hub.ended(hub.remove(), "SUCCEEDED")


def old_agent_is_found_and_fixed(stage):
    """An update policy brings a release of the agent with a vulnerable component, and then the next one, which is in the evidence."""
    cve, auditor, hub = "CVE-2026-9103", Auditor(stage), stage.hub()
    old = hub.releases.agent("0.8.1", channel=CHANNEL, sbom=sbom((OF_AGENT, "0.15.0")))
    policy = hub.cloud.call("PUT", "/tenant/agent-update-policies", {"scope": "HUB", "hubUuid": hub.uuid, "channel": CHANNEL})["policyUuid"]
    try:
        hub.ended(job_of_policy(hub, policy, old), "SUCCEEDED")
        hub.runs("0.8.1")
        import_feeds(stage, advisory(cve, "crates.io", OF_AGENT, "0.15.1"))
        exposed = until_it_is(hub, cve, "EXPOSED")
        expect([one["version"] for one in exposed["packages"]] == ["0.15.0"], f"exposed by {exposed}")
        new = hub.releases.agent("0.8.2", channel=CHANNEL, sbom=sbom())
        job = job_of_policy(hub, policy, new)
        hub.ended(job, "SUCCEEDED")
        hub.runs("0.8.2")
        until_it_is(hub, cve, "FIXED")
        evidence = auditor.evidence(cve)
        only_exposure(hub, evidence, "crates.io", OF_AGENT, "0.15.0", "0.15.1")
        has_job(evidence, hubJobUuid=job, jobType="SELF_UPDATE", appUuid=None, releaseUuid=new, version="0.8.2", policyUuid=policy)
    finally:
        hub.cloud.call("DELETE", f"/tenant/agent-update-policies/{policy}")


def job_of_policy(hub, policy, release):
    def made():
        return next((job for job in hub.jobs() if job["policyUuid"] == policy and job["releaseUuid"] == release), None)

    return until("the policy to make a job", made, 180, 1)["hubJobUuid"]


def has_job(evidence, **said):
    jobs = [{key: job[key] for key in said} for job in evidence["job"] if job["status"] == "SUCCEEDED"]
    expect(said in jobs, f"{said} is not among {evidence['job']}")


EXPOSURE_SCENARIOS = [old_package_is_found_and_fixed, old_component_is_found_and_fixed, old_agent_is_found_and_fixed]
