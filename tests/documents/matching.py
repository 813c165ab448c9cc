#!/usr/bin/env python3
"""Compares what the service says of this machine's packages with what debsecan says of them, given the same facts.

    matching.py PROGRAM

debsecan is the Debian project's own analyser. It reads facts as the security tracker publishes them; here both get facts that
are made up for the packages that are installed. Where the two differ, docs/api/vulnerabilities.md says why: each kind of
difference has facts of its own below, has to be there, and nothing else may differ.
"""

import pathlib
import random
import subprocess
import sys
import tempfile
import zlib

from software import import_feeds, listed, record, report
from common import Client, Service, Tenant

# A hub's kernel, which this machine need not have.
KERNEL = """
Package: linux-image-6.1.0-18-amd64
Status: install ok installed
Version: 6.1.76-1
Architecture: amd64
Source: linux-signed-amd64 (6.1.76+1)
Maintainer: Debian <debian@example.com>
Description: a signed kernel
"""
FORMAT = "\\t".join(
    "${%s}" % field for field in ("db:Status-Status", "Package", "Version", "Architecture", "source:Package", "source:Version")
)


class Fact:
    """What is published: of a source package, the version that fixes it in Debian 12 and the one that does in unstable."""

    def __init__(self, number: int, package: str, fixed: str, unstable: str | None = None, differs: str = "") -> None:
        self.cve = f"CVE-2030-{number:05}"
        self.package, self.fixed, self.unstable = package, fixed, fixed if unstable is None else unstable
        self.differs = differs

    def record(self) -> dict:
        return record(f"DEBIAN-{self.cve}", self.package, self.fixed or None, upstream=[self.cve])


def installed(admindir: str) -> list[dict]:
    """The packages, as dpkg names them."""
    said = subprocess.run(["dpkg-query", "--admindir", admindir, "-W", "-f", FORMAT + "\n"], check=True, capture_output=True, text=True)
    packages = []
    for line in said.stdout.splitlines():
        status, name, version, architecture, source, source_version = line.split("\t")
        if status == "installed":
            package = {"name": name, "version": version, "architecture": architecture}
            package |= {"source": source} if source != name else {}
            packages.append(package | ({"sourceVersion": source_version} if source_version != version else {}))
    return packages


def source_of(package: dict) -> tuple[str, str]:
    return package.get("source", package["name"]), package.get("sourceVersion", package["version"])


def facts(packages: list[dict]) -> list[Fact]:
    """For each source package versions around its own, and versions of others, which are written in all ways there are."""
    sources = sorted({source_of(package) for package in packages})
    versions = sorted({version for _, version in sources})
    choose = random.Random(12)
    made: list[Fact] = []

    def add(package: str, fixed: str, **members) -> None:
        made.append(Fact(len(made), package, fixed, **members))

    for name, version in sources:
        # Kernels have facts of their own.
        if name == "linux" or name.startswith("linux-signed-"):
            continue
        for fixed in (version, version + "~", version + "+deb12u9", "9:" + version.rpartition(":")[2], "0", ""):
            add(name, fixed)
        for fixed in choose.sample(versions, min(6, len(versions))):
            add(name, fixed)
        # Fixed in Debian 12 by what is installed, and in unstable later.
        add(name, version, unstable="9:1")
    # A version after the one that fixes it in Debian 12.
    name, version = next(pair for pair in sources if not pair[0].startswith("linux"))
    add(name, version + "~", unstable="9:1", differs="debsecan knows single versions of Debian 12 that are fixed")
    for fixed in ("6.1.82-1", "6.1.76-1", ""):
        differs = "" if fixed == "6.1.76-1" else "debsecan does not find what Debian signs"
        add("linux", fixed, differs=differs)
    return made


def of_debsecan(folder: str, published: list[Fact], packages: list[dict]) -> set[tuple[str, str]]:
    """The vulnerabilities and binary packages that debsecan lists."""
    names = "".join(f"{fact.cve},,made up\n" for fact in published)
    branch = lambda fact: fact.fixed if fact.fixed != fact.unstable else ""  # noqa: E731
    about = "".join(f"{fact.package},{index},S ? ,{fact.unstable},{branch(fact)}\n" for index, fact in enumerate(published))
    binaries: dict[str, list[str]] = {}
    for package in packages:
        binaries.setdefault(source_of(package)[0], []).append(package["name"])
    sources = "".join(f"{name},{' '.join(sorted(set(of)))}\n" for name, of in sorted(binaries.items()))
    data = f"VERSION 1\n{names}\n{about}\n{sources}\n"
    (pathlib.Path(folder) / "GENERIC").write_bytes(zlib.compress(data.encode()))
    command = ["debsecan", "--source", f"file://{folder}", "--status", f"{folder}/status", "--format", "simple"]
    command += ["--config", f"{folder}/none", "--whitelist", f"{folder}/none"]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    if said.stderr:
        raise SystemExit(said.stderr)
    return {tuple(line.split(" ")) for line in said.stdout.splitlines()}


def of_service(program: str, published: list[Fact], packages: list[dict]) -> set[tuple[str, str]]:
    """The same of the service."""
    with Service(program) as service:
        tenant = Tenant(Client(service.url))
        hub = tenant.hub()
        import_feeds(service, [fact.record() for fact in published])
        report(hub, packages)
        found = listed(tenant.owner, hub)
    binaries: dict[tuple[str, str], set[str]] = {}
    for package in packages:
        name, version = source_of(package)
        if name.startswith("linux-signed-"):
            name, version = "linux", version.replace("+", "-")
        binaries.setdefault((name, version), set()).add(package["name"])
    return {(one["id"], name) for one in found for package in one["packages"] for name in binaries[package["name"], package["version"]]}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        status = pathlib.Path("/var/lib/dpkg/status").read_text()
        (pathlib.Path(folder) / "status").write_text(status.rstrip("\n") + "\n" + KERNEL)
        packages = installed(folder)
        published = facts(packages)
        theirs = of_debsecan(folder, published, packages)
    ours = of_service(sys.argv[1], published, packages)
    reasons = {fact.cve: fact.differs for fact in published}
    failures = [
        f"{cve} {package}: only {'debsecan' if (cve, package) in theirs else 'the service'} lists it"
        for cve, package in sorted(theirs ^ ours)
        if not reasons[cve]
    ]
    differing = {cve for cve, _ in theirs ^ ours}
    failures += [f"{cve}: no difference, though {reason}" for cve, reason in reasons.items() if reason and cve not in differing]
    if not (theirs & ours) or len(theirs) == len(published):
        failures.append("the facts say nothing")
    for failure in failures[:50]:
        print(f"FAIL {failure}")
    print(
        f"{len(packages)} packages, {len(published)} facts: debsecan lists {len(theirs)}, the service {len(ours)}, both "
        f"{len(theirs & ours)}; {len(theirs ^ ours)} differ, {len(failures)} of them without a reason"
    )
    sys.exit(bool(failures))


main()
