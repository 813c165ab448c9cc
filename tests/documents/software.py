"""What the scripts of this folder share: hubs that report packages, and advisories that a service imports."""

import hashlib
import json
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/abuse"))

from common import Client, Hub, Service  # noqa: E402

PATIENCE_SECONDS = 60
FIELDS = ("name", "version", "architecture", "source", "sourceVersion")


def report(hub: Hub, packages: list[dict]) -> None:
    """A hub with Debian 12 reports its packages."""
    lines = sorted({tuple(package.get(field, "") for field in FIELDS) for package in packages})
    canonical = "debian\t12\n" + "".join("\t".join(line) + "\n" for line in lines)
    body = {
        "packagesSha256": hashlib.sha256(canonical.encode()).hexdigest(),
        "packageList": {"distribution": "debian", "distributionVersion": "12", "packages": packages},
        "kernel": "6.1.0-18-arm64",
        "agent": "1.4.0",
    }
    hub.client.post(f"/v1/hubs/{hub.uuid}/packages", body).data


def record(advisory: str, package: str, fixed: str | None, **members) -> dict:
    """A record of OSV: versions of a package of Debian 12 before `fixed` are affected, or all."""
    events = [{"introduced": "0"}] + ([{"fixed": fixed}] if fixed else [])
    affected = {"package": {"ecosystem": "Debian:12", "name": package}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}
    return {"id": advisory, "modified": "2026-01-02T00:00:00Z", "affected": [affected]} | members


def import_feeds(service: Service, *feeds: list[dict] | dict) -> None:
    """Imports lists of records, and catalogs of CISA."""
    for feed in feeds:
        with tempfile.TemporaryDirectory() as folder:
            for index, one in enumerate(feed if isinstance(feed, list) else [feed]):
                (pathlib.Path(folder) / f"{index}.json").write_text(json.dumps(one))
            path = folder if isinstance(feed, list) else f"{folder}/0.json"
            service.run("vulnerabilities", "import", path)


def listed(tenant: Client, hub: Hub) -> list[dict]:
    """The vulnerabilities of what a hub runs, as soon as its list is matched."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        found, page = [], 1
        while True:
            answer = tenant.get(f"/tenant/vulnerabilities?hubUuid={hub.uuid}&size=100&page={page}")
            found += answer.data
            if page * 100 >= int(answer.headers["x-total-count"]):
                break
            page += 1
        if found:
            return found
        time.sleep(0.2)
    raise SystemExit("nothing is found in time")
