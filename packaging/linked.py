"""The libraries that programs of the workspace are linked with, as Cargo.lock has them."""

import json
import os
import subprocess
import sys

PROJECT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def linked(names):
    """The packages of these names, and those that they are linked with: without build tools, tests
    and macros. Returns the metadata of packages by id, the ids of the named ones, and by id of each
    package the ids that it is linked with."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"]
    done = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(done.stderr.decode())
    metadata = json.loads(done.stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    roots = [id for id in metadata["workspace_members"] if packages[id]["name"] in names]
    if len(roots) != len(names):
        sys.exit(f"{os.path.basename(sys.argv[0])}: name packages of the workspace, such as hub-cloud")

    links, pending = {}, list(roots)
    while pending:
        package = pending.pop()
        if package in links:
            continue
        links[package] = sorted(
            dependency["pkg"]
            for dependency in nodes[package]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
            and not any("proc-macro" in target["kind"] for target in packages[dependency["pkg"]]["targets"])
        )
        pending += links[package]
    return packages, roots, links
