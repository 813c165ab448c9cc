"""Releases and jobs as a scenario sees them: keys, signed releases of the agent and of an app, a hub with the package installed, what
becomes of its jobs, and a line that is cut on demand. Releases are signed with `hub-cloud release` and brought to the service with
packaging/publish-release, as people do."""

import json
import os
import platform
import re
import shutil
import socket
import subprocess
import threading

from vm import PROJECT, Failure, until

UNIT = "hub-agent.service"
OVER = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
PUBLISH = os.path.join(PROJECT, "packaging/publish-release")


def command(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
    if done.returncode != 0:
        raise Failure(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


class Releases:
    """Two pairs of keys, both of which the service trusts, and hubs only the first. Counters count on by themselves."""

    def __init__(self, cloud, programs):
        self.cloud, self.programs = cloud, programs
        self.folder = os.path.join(cloud.folder, "releases")
        os.makedirs(self.folder)
        self.counter = 0
        for key in ("trusted", "foreign"):
            self.tool("keygen", "--no-password", "--out", self.path(key))
            for kind in ("agent", "app"):
                shutil.copy(self.path(key + ".pub"), os.path.join(cloud.release_keys, kind))
        self.app = cloud.call("POST", "/tenant/apps", {"name": "logger"})["appUuid"]

    def path(self, name):
        return os.path.join(self.folder, name)

    def tool(self, *words):
        command(os.path.join(self.programs, "hub-cloud"), "release", *words)

    def trust(self, vm):
        """Has a hub trust the first key."""
        with open(self.path("trusted.pub"), encoding="utf-8") as file:
            key = file.read()
        for kind in ("agent", "app"):
            vm.sh(f"cat >/etc/hub-agent/release-keys/{kind}/trusted.pub", stdin=key)

    def publish(self, file, version, key="trusted", run=None, counter=None, channel=None, sbom=None):
        """A signed release: of the agent, or of the app when it is said how it runs, with its bill of materials if there is one. Its
        uuid."""
        if counter is None:
            self.counter += 1
            counter = self.counter
        kind, place, person = ["--kind", "agent", "--name", "hub-agent", "--architecture", platform.machine()], [], self.cloud.ADMIN
        if run is not None:
            with open(self.path("run.toml"), "w", encoding="utf-8") as described:
                described.writelines(f"{key} = {json.dumps(value)}\n" for key, value in run.items())
            kind = ["--kind", "app", "--name", "logger", "--architecture", "any", "--app", self.path("run.toml")]
            place, person = ["--app", self.app, "--tenant", self.cloud.tenant], self.cloud.PERSON
        if channel:
            place = ["--channel", channel]
        if sbom is not None:
            with open(self.path("sbom.json"), "w", encoding="utf-8") as described:
                json.dump(sbom, described)
            kind += ["--sbom", self.path("sbom.json")]
        self.tool("sign", "--key", self.path(key + ".key"), *kind, "--version", version, "--counter", str(counter), file)
        published = json.loads(command(PUBLISH, "--service", self.cloud.url, *place, file, env={**os.environ, "HUB_TOKEN": self.cloud.token(person)}))
        if published["status"] != "READY":
            raise Failure(f"published, and not ready: {published}")
        release = published["releaseUuid"]
        if sbom is not None:
            # The bytes are those that were signed.
            of = f"/tenant/apps/{self.app}/releases" if run is not None else "/platform/agent-releases"
            self.cloud.call("PUT", f"{of}/{release}/documents/sbom", sbom, admin=run is None)
        return release

    def agent(self, version, content=None, **more):
        """A release of the agent: the program that was built, saying that it is another version, unless it is something else."""
        file = self.path("hub-agent")
        if content is None:
            with open(os.path.join(self.programs, "hub-agent"), "rb") as program:
                content = relabelled(program.read(), version)
        with open(file, "wb") as out:
            out.write(content)
        return self.publish(file, version, **more)

    def logger(self, version, script, counter=None, sbom=None, **run):
        """A release of the app: a shell script. `healthSecs` is short, since each install waits for it."""
        tree = self.path("app")
        shutil.rmtree(tree, ignore_errors=True)
        os.makedirs(os.path.join(tree, "bin"))
        program = os.path.join(tree, "bin/logger")
        with open(program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(program, 0o755)
        archive = self.path("logger.tar.zst")
        command("tar", "-C", tree, "--owner=0", "--group=0", "--zstd", "-cf", archive, "bin")
        return self.publish(archive, version, counter=counter, sbom=sbom, run={"entryPoint": "bin/logger", "healthSecs": 5, **run})

    def spoil(self, release):
        """Changes a byte of a file in the service's store: what is downloaded is then not what was signed."""
        for folder, _, files in os.walk(os.path.join(self.cloud.folder, "hub-cloud/files")):
            for name in files:
                if release in os.path.join(folder, name):
                    with open(os.path.join(folder, name), "r+b") as file:
                        first = file.read(1)
                        file.seek(0)
                        file.write(bytes([first[0] ^ 1]))
                    return
        raise Failure(f"no file of release {release} in the store")


def relabelled(program, version):
    """The program with another version of the same length in all its texts, and in its instructions."""
    with open(os.path.join(PROJECT, "Cargo.toml"), encoding="utf-8") as file:
        own = next(line.split('"')[1] for line in file if line.startswith("version = "))
    if len(own) != len(version):
        raise Failure(f"{version} is not as long as {own}")
    own, version = own.encode(), version.encode()
    # Instructions of x86 write or compare a short text as a number of four bytes, and its rest.
    head, rest = re.escape(own[:4]), re.escape(own[4:])
    writes = rb"(\xc6[\x40-\x47]\x04)" + rest + rb"(\x41?\xc7[\x00-\x07])" + head
    compares = head + rb"(\x33[\x00-\x3f]\x0f\xb6[\x40-\x7f]\x04\x83[\xf0-\xf7])" + rest
    program = re.sub(writes, lambda found: found[1] + version[4:] + found[2] + version[:4], program)
    program = re.sub(compares, lambda found: version[:4] + found[1] + version[4:], program)
    return program.replace(own, version)


class Hub:
    """The hub that a machine is, by its uuid: its jobs, and what runs on it."""

    def __init__(self, vm, cloud, releases, uuid):
        self.vm, self.cloud, self.releases, self.uuid = vm, cloud, releases, uuid

    def install(self, release, **more):
        return self.cloud.call("POST", f"/tenant/hubs/{self.uuid}/jobs/app-install", {"appReleaseUuid": release, **more})

    def remove(self):
        return self.cloud.call("POST", f"/tenant/hubs/{self.uuid}/jobs/app-remove?appUuid={self.releases.app}")

    def update(self, release, **more):
        return self.cloud.call("POST", f"/platform/hubs/{self.uuid}/jobs/self-update", {"releaseUuid": release, **more}, admin=True)["hubJobUuid"]

    def job(self, job):
        return self.cloud.call("GET", f"/tenant/hub-monitoring/{self.uuid}/jobs/{job}")

    def ended(self, job, status, reason=None, timeout_s=300):
        """Waits for the job's end, which has to be this one."""
        found = until(f"job {job} to end", lambda: (now := self.job(job))["status"] in OVER and now, timeout_s, 1)
        if found["status"] != status or (reason and reason not in json.dumps(found)):
            raise Failure(f"the job was to end {status} {reason or ''}, and is {json.dumps(found)}\n{json.dumps(self.job_events(job))}")
        return found

    def jobs(self):
        """Newest first."""
        return self.cloud.call("GET", f"/tenant/hubs/{self.uuid}/jobs")

    def job_events(self, job):
        return self.cloud.call("GET", f"/tenant/hub-monitoring/{self.uuid}/jobs/{job}/events")

    def version(self):
        """Of the agent that runs, by its own word."""
        # The agent itself, or the child of its launcher.
        code, out, _ = self.vm.run("p=$(systemctl show -p MainPID --value hub-agent); for c in $(pgrep -P $p) $p; do e=$(readlink /proc/$c/exe); "
                                   "case $e in */hub-agent) $e --version; exit ;; esac; done; exit 1")
        return out.split()[-1] if code == 0 and out.split() else None

    def runs(self, version, timeout_s=120):
        until(f"version {version} to run and be ready", lambda: self.version() == version and self.active(), timeout_s, 1)

    def active(self):
        return self.vm.run(f"systemctl is-active {UNIT}")[1].strip() == "active"

    def app_unit(self):
        return f"hub-app-{self.releases.app}.service"

    def app_runs(self):
        return self.vm.run(f"systemctl is-active {self.app_unit()}")[1].strip() == "active"

    def reported(self):
        """The app as the hub reports it, and nothing when it is not among what is installed."""
        apps = self.cloud.call("GET", f"/tenant/hubs/{self.uuid}/installed-apps")
        return next((app for app in apps if app["appUuid"] == self.releases.app), None)


class Line:
    """A way to the service that ends connections after some bytes of a download, as often as set."""

    def __init__(self, port):
        self.to_port, self.cuts_left, self.cut_after_bytes, self.cuts_made = port, 0, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, times, after_bytes):
        self.cuts_left, self.cut_after_bytes, self.cuts_made = times, after_bytes, 0

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                service = socket.create_connection(("127.0.0.1", self.to_port))
            except OSError:
                return
            downloads = threading.Event()
            threading.Thread(target=self._carry, args=(client, service, downloads, True), daemon=True).start()
            threading.Thread(target=self._carry, args=(service, client, downloads, False), daemon=True).start()

    def _carry(self, source, target, downloads, asks):
        carried = 0
        try:
            while piece := source.recv(16384):
                if asks and b"GET /installer/" in piece:
                    downloads.set()
                if not asks and downloads.is_set() and self.cuts_left > 0:
                    carried += len(piece)
                    if carried > self.cut_after_bytes:
                        self.cuts_left -= 1
                        self.cuts_made += 1
                        break
                target.sendall(piece)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()
