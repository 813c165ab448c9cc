#!/usr/bin/env python3
"""Validates OpenVEX documents with vexipy, a library of others: its model refuses what the specification does not allow, and what
it would lose of a document is what the specification does not have. Beyond that the schema that OpenVEX publishes counts versions
from 1, and has nothing twice in a list. Broken documents have to be refused, too.

    vex.py FILE...
"""

import copy
import json
import pathlib
import sys
import warnings

import vexipy

CONTEXT = "https://openvex.dev/ns/v0.2.0"
TIMES = ("timestamp", "last_updated", "action_statement_timestamp")

# A justification alone is better, says the library; the specification allows both.
warnings.filterwarnings("ignore", message="The use of an impact statement")


def lost(given, kept, path: str = "") -> list[str]:
    """The members of a document that the model does not have."""
    if isinstance(given, dict) and isinstance(kept, dict):
        found = []
        for name, value in given.items():
            if name not in kept:
                found.append(f"{path}/{name}")
            elif name not in TIMES:
                found += lost(value, kept[name], f"{path}/{name}")
        return found
    if isinstance(given, list) and isinstance(kept, list):
        return [fault for index, pair in enumerate(zip(given, kept)) for fault in lost(*pair, f"{path}/{index}")]
    return [] if given == kept else [path]


def beyond_model(document: dict) -> list[str]:
    """What the published schema refuses and the library does not."""
    found = [] if isinstance(document["version"], int) and document["version"] >= 1 else ["/version"]
    if len({json.dumps(one, sort_keys=True) for one in document["statements"]}) != len(document["statements"]):
        found.append("/statements: something is there twice")
    for index, statement in enumerate(document["statements"]):
        for name, many in (("products", statement.get("products")), ("aliases", statement["vulnerability"].get("aliases"))):
            if many and len({json.dumps(one, sort_keys=True) for one in many}) != len(many):
                found.append(f"/statements/{index}/{name}: something is there twice")
    return found


def faults(document) -> list[str]:
    if not isinstance(document, dict) or document.get("@context") != CONTEXT:
        return ["/@context"]
    if "timestamp" not in document or not document.get("statements"):
        # The library sets what is missing.
        return ["/timestamp or /statements"]
    try:
        read = vexipy.Document.model_validate_json(json.dumps(document))
    except ValueError as error:
        return [str(error)]
    return lost(document, json.loads(read.model_dump_json(by_alias=True, exclude_unset=True))) + beyond_model(document)


def broken(document: dict):
    """Copies of a document, each with a fault."""
    for name, change in {
        "another context": lambda it: it.update({"@context": "https://openvex.dev/ns/v9"}),
        "no id": lambda it: it.pop("@id"),
        "no author": lambda it: it.pop("author"),
        "no time": lambda it: it.pop("timestamp"),
        "a version that is no number": lambda it: it.update(version="one"),
        "no statement": lambda it: it.update(statements=[]),
        "a status that nobody knows": lambda it: it["statements"][0].update(status="harmless"),
        "no vulnerability": lambda it: it["statements"][0].pop("vulnerability"),
        "no reason": lambda it: it["statements"][0].update(status="not_affected", justification=None, impact_statement=None),
        "a statement that is there twice": lambda it: it["statements"].append(it["statements"][0]),
        "a version from 0": lambda it: it.update(version=0),
        "a member that is not specified": lambda it: it["statements"][0].update(verdict="fine"),
    }.items():
        changed = copy.deepcopy(document)
        change(changed)
        yield name, changed


def main() -> None:
    failures = []
    paths = [pathlib.Path(path) for path in sys.argv[1:]]
    for path in paths:
        document = json.loads(path.read_text())
        failures += [f"{path.name}: {fault}" for fault in faults(document)]
        failures += [f"{path.name}, broken: {name}: it is accepted" for name, one in broken(document) if not faults(one)]
    print(*[f"FAIL {failure}" for failure in failures], f"{len(paths)} documents of OpenVEX, {len(failures)} failures", sep="\n")
    sys.exit(bool(failures))


main()
