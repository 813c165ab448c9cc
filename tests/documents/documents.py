#!/usr/bin/env python3
"""Writes the documents that a running service sends out into folders: drafts of reports as CSAF, Thing Descriptions, JSON Schemas
of devices and their values, statements as OpenVEX, and what a server of Dependency-Track gets as CycloneDX.

    documents.py PROGRAM FOLDER
"""

import base64
import datetime
import http.server
import json
import pathlib
import sys
import threading
import time
import urllib.parse
import uuid

from software import PATIENCE_SECONDS, import_feeds, listed, record, report
from common import Client, Hub, Service, Tenant, register_with_login

# Text that documents have to escape, and that is not only of ASCII.
NAME = 'Gebäude "7" <Süd> & Söhne \\ 倉庫'
CVSS = [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}]
PACKAGES = [
    {"name": "bash", "version": "5.2.15-2"},
    {"name": "libssl3", "version": "3.0.11-1~deb12u2", "source": "openssl", "sourceVersion": "3.0.11-1~deb12u2"},
    {"name": "libstdc++6", "version": "12.2.0-14", "source": "gcc-12"},
    {"name": "git", "version": "1:2.39.2-1.1"},
]
# BTHome 2: temperature, humidity, battery, an open window, a counter, a button.
FRAME = bytes.fromhex("40" "016102ca0903bf13" "2d01" "0960" "3a01")


def records() -> list[dict]:
    def of(number: int, package: str, fixed: str | None, **members) -> dict:
        cve = f"CVE-2024-{number:04}"
        members = {"upstream": [cve], "summary": f"{package}: {NAME}", "severity": CVSS} | members
        return record(f"DEBIAN-{cve}", package, fixed, **members)

    return [
        of(1, "openssl", "3.0.13-1"),
        of(2, "openssl", None),
        of(3, "git", "1:2.39.5-0+deb12u1"),
        of(4, "gcc-12", None, summary=""),
        of(5, "bash", "5.2.15-2+b7", severity=[]),
        of(6, "openssl", "3.0.12-1"),
        of(7, "openssl", "3.0.14-1", affected=sum((record("", name, "9").pop("affected") for name in ("openssl", "git", "bash")), [])),
        # Without a CVE.
        record("DSA-5764-1", "openssl", "3.0.14-1", summary="Several faults", severity=CVSS),
    ]


def catalog() -> dict:
    """CISA's catalog with one vulnerability."""
    known = {"cveID": "CVE-2024-0001", "dateAdded": "2026-01-05", "dueDate": "2026-01-26", "knownRansomwareCampaignUse": "Known"}
    return {"catalogVersion": "2026.01.05", "dateReleased": "2026-01-05T12:00:00.000Z", "count": 1, "vulnerabilities": [known]}


STATEMENTS = {
    "CVE-2024-0002": {"status": "not_affected", "justification": "vulnerable_code_not_in_execute_path", "impactStatement": NAME},
    "CVE-2024-0003": {"status": "not_affected", "impactStatement": "Hubs do not fetch from others"},
    "CVE-2024-0004": {"status": "affected", "actionStatement": "Update to the next image"},
    "CVE-2024-0005": {"status": "fixed"},
    "CVE-2024-0006": {"status": "under_investigation"},
    "CVE-2024-0007": {"status": "not_affected", "justification": "component_not_present"},
}


def write(folder: pathlib.Path, kind: str, name: str, document) -> None:
    (folder / kind).mkdir(exist_ok=True)
    (folder / kind / f"{name}.json").write_text(json.dumps(document, indent=1))


def reports(service: Service, tenant: Tenant, folder: pathlib.Path) -> None:
    """The draft of each vulnerability before and after a statement, and of one that no hub has any more."""
    exposed, updated = tenant.hub(), tenant.hub()
    import_feeds(service, records(), catalog())
    report(exposed, PACKAGES)
    report(updated, PACKAGES)
    found = {one["id"] for one in listed(tenant.owner, exposed)}
    wanted = {identifier for one in records() for identifier in one.get("upstream", [one["id"]])}
    if found != wanted:
        raise SystemExit(f"{wanted ^ found} are not found, or too many")

    def draft(identifier: str, state: str) -> None:
        answer = tenant.owner.get(f"/tenant/vulnerabilities/{urllib.parse.quote(identifier)}/report?form=csaf")
        if answer.status != 200:
            raise SystemExit(f"{identifier}: {answer.status} {answer.body[:500]!r}")
        write(folder, "csaf", f"{identifier}-{state}", json.loads(answer.body))

    for identifier in sorted(found):
        draft(identifier, "without-statement")
    for identifier, statement in STATEMENTS.items():
        tenant.owner.put(f"/tenant/vulnerabilities/{identifier}/statement", statement).data
        draft(identifier, statement["status"])
    # Both hubs get an image that has nothing of it.
    for hub in (exposed, updated):
        report(hub, [{"name": "openssl", "version": "3.5.0-1"}, {"name": "coreutils", "version": "9.1-1"}])
    listed_hubs(tenant, "CVE-2024-0001", "FIXED")
    for identifier in ("CVE-2024-0001", "CVE-2024-0005"):
        draft(identifier, "nowhere-any-more")
    # The list of statements, where the service has it.
    described = tenant.anyone.get("/openapi.json").json()["paths"]
    if "/tenant/vulnerabilities/openvex" in described:
        write(folder, "openvex", "tenant", tenant.owner.get("/tenant/vulnerabilities/openvex").json())


def listed_hubs(tenant: Tenant, identifier: str, status: str) -> None:
    """Waits until all hubs of a vulnerability have this status."""
    end = time.monotonic() + PATIENCE_SECONDS
    while {hub["status"] for hub in tenant.owner.get(f"/tenant/vulnerabilities/{identifier}/hubs").data} != {status}:
        if time.monotonic() > end:
            raise SystemExit(f"the hubs of {identifier} are not {status} in time")
        time.sleep(0.2)


def upload(hub: Hub, address: str) -> None:
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    event = {"observedAt": now, "address": address, "addressType": "random", "rssi": -61, "serviceData": {"fcd2": base64.b64encode(FRAME).decode()}}
    answer = hub.client.post("/v1/ble/events", {"batchUuid": str(uuid.uuid4()), "events": [event]}).data
    if answer["accepted"] != 1:
        raise SystemExit(f"the event is not accepted: {answer}")


def things(anyone: Client, tenant: Tenant, folder: pathlib.Path) -> None:
    """The description and the values of a person's device, and the description for the recipient of a mandate."""
    _, person, login = register_with_login(anyone)
    hub = tenant.hub(code=tenant.code(ownerUserUuid=login["userUuid"]))
    model = tenant.owner.post("/tenant/device-catalog", {"template": "bthome/v2"}).data["deviceUuid"]
    address = "C4:11:22:33:44:01"
    body = {"deviceUuid": model, "address": address, "serialNumber": NAME}
    device = tenant.owner.post("/tenant/devices", body).data["deviceInstanceId"]
    upload(hub, address)
    until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    mandate = {"recipient": {"name": NAME}, "until": until.isoformat(), "form": "PULL"}
    recipient = anyone.bearer(person.post("/app/mandates", mandate).data["credential"])
    upload(hub, address)
    for name, client, path in (("person", person, "/app"), ("mandate", recipient, "/mandate/v1")):
        end = time.monotonic() + PATIENCE_SECONDS
        while not (answer := client.get(f"{path}/devices/{device}/thing-description")).json().get("properties"):
            if time.monotonic() > end:
                raise SystemExit(f"the values of the device are not noted in time: {answer}")
            time.sleep(0.2)
        write(folder, "things", name, answer.json())
    write(folder, "schemas", "device", person.get(f"/app/devices/{device}/value-schema").json())
    write(folder, "values", "device", person.get(f"/app/devices/{device}/sensor-data").data["items"])


class Server(http.server.BaseHTTPRequestHandler):
    """Takes what Dependency-Track's `PUT /api/v1/bom` takes."""

    taken: list[dict] = []

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        known = self.path == "/api/v1/bom" and self.headers["x-api-key"] == "odt_key"
        if known:
            self.taken.append(json.loads(body))
        answer = b'{"token": "1"}'
        self.send_response(200 if known else 401)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_) -> None:
        pass


def uploads(tenant: Tenant, folder: pathlib.Path) -> None:
    """What a server gets of hubs of two kinds."""
    report(tenant.hub(), PACKAGES)
    report(tenant.hub(), [{"name": "coreutils", "version": "9.1-1", "architecture": "arm64"}])
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        body = {"url": f"http://127.0.0.1:{server.server_port}", "project": NAME, "apiKey": "odt_key"}
        waiting = tenant.owner.put("/tenant/dependency-track", body).data["waiting"]
        end = time.monotonic() + PATIENCE_SECONDS
        while (state := tenant.owner.get("/tenant/dependency-track").data)["sent"] < waiting:
            if time.monotonic() > end:
                raise SystemExit(f"the server does not get all in time: {state}")
            time.sleep(0.2)
        server.shutdown()
    if waiting < 2 or len(Server.taken) != waiting:
        raise SystemExit(f"{waiting} lists, {len(Server.taken)} uploads")
    for upload in Server.taken:
        if upload["projectName"] != NAME or not upload["autoCreate"]:
            raise SystemExit(f"the project is {upload['projectName']}")
        write(folder, "cyclonedx", upload["projectVersion"], json.loads(base64.b64decode(upload["bom"], validate=True)))


def main() -> None:
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    with Service(program, settings=["--allow-private-targets=true"]) as service:
        anyone = Client(service.url)
        tenant = Tenant(anyone, NAME)
        reports(service, tenant, folder)
        things(anyone, tenant, folder)
        uploads(tenant, folder)


main()
