"""What the scripts of this folder share. Each script attacks a running service and exits with 0 when every attack is refused, or
bounded, and with 1 otherwise. All are called the same way:

    tests/abuse/NAME --url URL             a service that runs already
    tests/abuse/NAME [--program PATH]      a service of its own, on a fresh directory and database
        [--database sqlite|postgres|URL]   its database; "postgres" makes one at HUB_TESTS_POSTGRES_URL and drops it
        [--full]                           longer, for measurements by hand

With --url, HUB_ADMIN_EMAIL and HUB_ADMIN_PASSWORD name a platform administrator, for scripts that need one. Python 3's standard
library is all that is used."""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery staple"
ADMIN_EMAIL = "admin@example.com"
START_SECONDS = 60


@dataclasses.dataclass
class Reply:
    """An answer. `status` 0 means that the connection failed; `body` says how."""

    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes
    seconds: float

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            return {}

    @property
    def data(self):
        """`data` of a success. Fails the script on anything else."""
        if not 200 <= self.status < 300:
            raise SystemExit(f"unexpected answer {self.status}: {self.body[:500].decode(errors='replace')}")
        return self.json().get("data") if self.body else None

    @property
    def code(self) -> str:
        """The stable code of a failure, such as `HUB_IN_USE`."""
        found = self.json()
        return found.get("code", "") if isinstance(found, dict) else ""


class Client:
    """Calls one service with fixed headers. Every thread keeps a connection of its own."""

    connections = threading.local()

    def __init__(self, url: str, headers: dict[str, str] | None = None, tls=None, timeout: float = 60) -> None:
        self.url, self.headers, self.tls, self.timeout = url.rstrip("/"), headers or {}, tls, timeout

    def having(self, **headers: str) -> "Client":
        """The same with further headers; `x_tenant_uuid` is sent as `x-tenant-uuid`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Client(self.url, self.headers | named, self.tls, self.timeout)

    def bearer(self, token: str) -> "Client":
        return self.having(authorization="Bearer " + token)

    def call(self, method: str, path: str, body=None, **headers: str) -> Reply:
        """`body`: bytes are sent as they are, anything else as JSON."""
        sent = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            sent = {"content-type": "application/json"} | sent
        began = time.monotonic()
        for is_last in (False, True):
            connection, is_new = self.connection()
            try:
                connection.request(method, path, body, sent)
                response = connection.getresponse()
                content = response.read()
                names = {name.lower(): value for name, value in response.getheaders()}
                return Reply(response.status, names, content, time.monotonic() - began)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                # A kept connection may have been closed by the service meanwhile.
                if is_new or is_last:
                    return Reply(0, {}, repr(error).encode(), time.monotonic() - began)
        raise AssertionError("unreachable")

    def get(self, path: str, **headers: str) -> Reply:
        return self.call("GET", path, **headers)

    def post(self, path: str, body=None, **headers: str) -> Reply:
        return self.call("POST", path, {} if body is None else body, **headers)

    def put(self, path: str, body=None, **headers: str) -> Reply:
        return self.call("PUT", path, {} if body is None else body, **headers)

    def delete(self, path: str, **headers: str) -> Reply:
        return self.call("DELETE", path, **headers)

    def connection(self) -> tuple[http.client.HTTPConnection, bool]:
        kept = self.connections.__dict__
        found = kept.get((self.url, id(self.tls)))
        if found:
            return found, False
        parts = urllib.parse.urlsplit(self.url)
        secure = {"context": self.tls} if self.tls else {}
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        made = kind(parts.hostname, parts.port, timeout=self.timeout, **secure)
        kept[(self.url, id(self.tls))] = made
        return made, True

    def close(self) -> None:
        """Closes this thread's connection."""
        connection = self.connections.__dict__.pop((self.url, id(self.tls)), None)
        if connection:
            connection.close()


class Service:
    """A `hub-cloud serve` of its own, on a fresh directory and database, with a platform administrator. Leaving it stops the
    process and removes what it left behind."""

    def __init__(self, program: str, database: str = "sqlite", settings: list[str] = [], environment: dict[str, str] = {}):
        self.program, self.settings = str(program), list(settings)
        self.environment = os.environ | {"HUB_CLOUD_LOG": "warn"} | environment
        self.directory = tempfile.TemporaryDirectory(prefix="hub-abuse-")
        self.data = pathlib.Path(self.directory.name)
        self.log = self.data / "service.log"
        self.database = ""
        if database == "postgres":
            self.database = "hub_abuse_" + uuid.uuid4().hex
            psql(f"CREATE DATABASE {self.database}")
            database = urllib.parse.urlsplit(postgres_url())._replace(path="/" + self.database).geturl()
        if database != "sqlite":
            self.settings += ["--database-url", database]
        self.process = None
        self.url = ""

    def __enter__(self) -> "Service":
        try:
            # Only this and `serve` make a database.
            self.run("migrate")
            self.run("admin", "create", "--email", ADMIN_EMAIL, "--password-stdin", stdin=PASSWORD)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.stop()
        self.directory.cleanup()
        if self.database:
            psql(f"DROP DATABASE {self.database} WITH (FORCE)")

    def run(self, *arguments: str, stdin: str = "") -> str:
        """Runs another command of the program on the same data."""
        command = [self.program, *arguments, "--data-dir", str(self.data / "data"), *self.settings]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, env=self.environment)
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def start(self, listen: str = "127.0.0.1:0") -> None:
        command = [self.program, "serve", "--listen", listen, "--data-dir", str(self.data / "data"), *self.settings]
        began = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            found = re.search(rb"listening on (https?://[^\s\"]+)", self.log.read_bytes()[began:])
            if found:
                self.url = found[1].decode()
                return
            time.sleep(0.02)
        raise SystemExit("the service did not start:\n" + self.log.read_text())

    def restart(self, sent: int = signal.SIGTERM) -> None:
        """Stops it, by SIGTERM unless another signal is given, and starts it again at the same address on the same data."""
        self.stop(sent)
        self.start(urllib.parse.urlsplit(self.url).netloc)

    def stop(self, sent: int = signal.SIGTERM) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(sent)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def resident_bytes(self) -> int:
        """Memory in use now (RSS)."""
        return self.memory("VmRSS")

    def peak_bytes(self) -> int:
        """The most memory in use since the start, or since `forget_peak`."""
        return self.memory("VmHWM")

    def forget_peak(self) -> None:
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def memory(self, name: str) -> int:
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)[1]) * 1024


def postgres_url() -> str:
    return os.environ.get("HUB_TESTS_POSTGRES_URL") or "postgres://postgres@127.0.0.1:5432/postgres"


def psql(statement: str) -> None:
    command = ["psql", "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--command", statement, postgres_url()]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


class Tenant:
    """A new tenant with an owner of its own. `self.owner` acts in it."""

    def __init__(self, client: Client, name: str = "a tenant") -> None:
        self.anyone = client
        self.email, person = register(client)
        self.uuid = person.post("/tenant/tenants", {"name": name}).data["tenantUuid"]
        self.owner = person.having(x_tenant_uuid=self.uuid)

    def member(self, role: str) -> Client:
        """Somebody new with this role."""
        _, person, login = register_with_login(self.anyone)
        body = {"personaUuid": login["personaUuid"], "role": role}
        self.owner.post(f"/tenant/tenants/{self.uuid}/members", body).data
        return person.having(x_tenant_uuid=self.uuid)

    def key(self, *scopes: str, per_minute: int = 100_000) -> Client:
        """A new API key."""
        body = {"name": "a key", "scopes": list(scopes), "rateLimitPerMinute": per_minute}
        made = self.owner.post("/tenant/api-keys", body).data
        return self.anyone.having(x_api_key=made["apiKey"], x_tenant_uuid=self.uuid)

    def code(self, **settings) -> str:
        """A new claim code, as `ClaimCodeGenerateRequest` has its members."""
        return self.owner.post("/tenant/hubs/claim-codes", settings).data["claimCode"]

    def hub(self, device_instance_id: str = "", code: str = "") -> "Hub":
        """New hardware, claimed for this tenant."""
        return Hub(self.anyone, code or self.code(), device_instance_id or str(uuid.uuid4()))

    def hubs(self, count: int) -> list["Hub"]:
        code = self.code(maxUses=count)
        return [self.hub(code=code) for _ in range(count)]


class Hub:
    """A hub that exists only as its requests. `self.client` carries its access token."""

    def __init__(self, client: Client, code: str, device_instance_id: str) -> None:
        self.device_instance_id = device_instance_id
        body = {"claimCode": code, "deviceInstanceId": device_instance_id}
        self.credentials = client.post("/v1/hubs/claim", body).data
        self.uuid = self.credentials["hubUuid"]
        self.client = client.bearer(self.credentials["accessToken"])

    def refresh(self) -> Reply:
        reply = self.client.post("/v1/hubs/refresh", {"refreshToken": self.credentials["refreshToken"]})
        if reply.status == 200:
            self.client = self.client.bearer(reply.data["accessToken"])
        return reply


def register(client: Client) -> tuple[str, Client]:
    """Somebody with a new account: the e-mail address, and the client that acts as them."""
    return register_with_login(client)[:2]


def register_with_login(client: Client) -> tuple[str, Client, dict]:
    email = f"{uuid.uuid4().hex}@example.com"
    login = client.post("/auth/register", {"email": email, "password": PASSWORD}).data
    return email, client.bearer(login["accessToken"]), login


def administrator(client: Client) -> Client:
    """The platform administrator, logged in."""
    email = os.environ.get("HUB_ADMIN_EMAIL", ADMIN_EMAIL)
    password = os.environ.get("HUB_ADMIN_PASSWORD", PASSWORD)
    return client.bearer(client.post("/auth/login", {"email": email, "password": password}).data["accessToken"])


def at_once(count: int, work, *arguments) -> list:
    """Runs `work(index, *arguments)` so often, each in a thread of its own, and answers the results in their order."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda index: work(index, *arguments), range(count)))


class Probe:
    """Calls something again and again in a thread while an attack runs: `with Probe(lambda: client.get("/healthz")) as probe`."""

    def __init__(self, call, every_seconds: float = 0.01) -> None:
        self.call, self.every_seconds = call, every_seconds
        self.replies: list[Reply] = []
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.loop, daemon=True)

    def loop(self) -> None:
        while not self.done.is_set():
            self.replies.append(self.call())
            self.done.wait(self.every_seconds)

    def __enter__(self) -> "Probe":
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.done.set()
        self.thread.join()

    def percentile(self, percent: float) -> float:
        """Seconds that so many percent of the answers needed at most."""
        return percentile([reply.seconds for reply in self.replies], percent)

    def statuses(self) -> dict[int, int]:
        return statuses(self.replies)


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else float("nan")


def statuses(replies: list[Reply]) -> dict[int, int]:
    """How many answers had each status."""
    return {status: sum(reply.status == status for reply in replies) for status in sorted({reply.status for reply in replies})}


class Report:
    """Prints each finding as it is made. `Report.exit()` ends the script."""

    def __init__(self) -> None:
        self.failed = 0

    def check(self, name: str, holds: bool, detail="") -> bool:
        self.failed += not holds
        print(f"{'ok   ' if holds else 'FAIL '} {name}{f': {detail}' if detail != '' else ''}", flush=True)
        return holds

    def refused(self, name: str, reply: Reply, status: int, code: str = "") -> bool:
        """Whether the answer is this refusal."""
        found = f"{reply.status} {reply.code}".strip()
        return self.check(name, reply.status == status and (not code or reply.code == code), found)

    def exit(self) -> None:
        print(f"{self.failed} findings" if self.failed else "everything was refused")
        sys.exit(1 if self.failed else 0)


def options(documentation: str | None, add=None) -> argparse.Namespace:
    """The common options of a script; `add(parser)` adds its own."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("HUB_TESTS_PROGRAM", str(ROOT / "target/release/hub-cloud"))
    parser.add_argument("--url", help="a service that runs already; without it one is started")
    parser.add_argument("--program", default=default, help="the hub-cloud to start [%(default)s]")
    parser.add_argument("--database", default="sqlite", help="sqlite, postgres or a URL [%(default)s]")
    parser.add_argument("--full", action="store_true", help="longer, for measurements by hand")
    if add:
        add(parser)
    return parser.parse_args()


@contextlib.contextmanager
def target(chosen: argparse.Namespace, settings: list[str] = [], environment: dict[str, str] = {}):
    """The service to attack: a client without credentials, and the `Service` if it was started here (else None)."""
    if chosen.url:
        yield Client(chosen.url), None
        return
    with Service(chosen.program, chosen.database, settings, environment) as service:
        yield Client(service.url), service
