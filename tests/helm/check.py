"""Renders the Helm chart with several values, and validates what comes out.

    check.py RENDER CHART HUB_CLOUD

Values are validated with the chart's schema, and objects with the published schemas of the oldest
and the newest version of Kubernetes that the chart is for and `kubernetes-validate` knows. Then what
no schema says: names that refer to each other, settings that exist, secrets that are in a Secret.
"""

import copy
import json
import pathlib
import re
import subprocess
import sys

import jsonschema
import kubernetes_validate
import yaml

RENDER, CHART, HUB_CLOUD = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
VERSIONS = ["1.27", "1.33"]
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
ABOUT = yaml.safe_load((CHART / "Chart.yaml").read_text())

LEAST = {
    "image": {"repository": "registry.example.com/hub-cloud"},
    "existingSecret": "hub-cloud",
    "settings": {"public-url": "https://hubs.example.com", "files": "s3://releases/hubs"},
}
FULL = {
    "image": {"repository": "registry.example.com/hub-cloud", "tag": "0.1.0-2"},
    "imagePullSecrets": [{"name": "registry"}],
    "replicas": 5,
    "existingSecret": "secrets",
    "settings": {
        "public-url": "https://hubs.example.com:8443/",
        "files": "s3://releases/hubs",
        "client-certificates": "required",
        "upload-limit-per-minute": 1000000,
        "require-approval": True,
        "trusted-proxies": "10.0.0.0/8",
    },
    "releaseKeys": {"agent": {"a.pub": "untrusted comment: a\nRWQ\n"}, "app": {"b.pub": "RWQ\n"}},
    "tlsSecret": "tls",
    "service": {"type": "LoadBalancer", "port": 443, "annotations": {"a": "b"}},
    "ingress": {"enabled": True, "className": "nginx", "annotations": {"c": "d"}, "tlsSecret": "public"},
    "networkPolicy": {"from": [{"namespaceSelector": {}}], "metricsFrom": [{"podSelector": {}}]},
    "podAnnotations": {"e": "f"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "g", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}
ONE = {**LEAST, "replicas": 1, "settings": {"public-url": "http://h"}, "networkPolicy": {"enabled": False}}


def changed(path, value):
    values = copy.deepcopy(LEAST)
    place = values
    for name in path[:-1]:
        place = place.setdefault(name, {})
    place[path[-1]] = value
    return values


REFUSED = {
    "no image": changed(["image", "repository"], ""),
    "no Secret": changed(["existingSecret"], ""),
    "no public URL": changed(["settings", "public-url"], ""),
    "no shared release files": changed(["settings", "files"], ""),
    "no replica": changed(["replicas"], 0),
    "a misspelt value": changed(["replica"], 3),
    "an address that the chart sets": changed(["settings", "listen"], "0.0.0.0:80"),
    "a database's password in a ConfigMap": changed(["settings", "database-url"], "postgres://a:b@c/d"),
    "a token in a ConfigMap": changed(["settings", "metrics-token"], "secret"),
    "a list as a setting": changed(["settings", "cors-origins"], ["https://a.example"]),
    "a key that is no public key": changed(["releaseKeys", "agent", "agent.key"], "RWQ"),
}


def merged(base, over):
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return {name: merged(base[name], over[name]) if name in base and name in over else over.get(name, base.get(name))
            for name in {**base, **over}}


def rendered(values):
    """The objects, or the reason why there are none."""
    values = merged(DEFAULTS, values)
    try:
        jsonschema.validate(values, SCHEMA)
    except jsonschema.ValidationError as error:
        return None, error.message
    chart = {"Name": ABOUT["name"], "Version": ABOUT["version"], "AppVersion": ABOUT["appVersion"]}
    release = {"Name": "hubs", "Namespace": "default", "Service": "Helm"}
    context = json.dumps({"Values": values, "Chart": chart, "Release": release})
    run = subprocess.run([RENDER, CHART], input=context, capture_output=True, text=True)
    if run.returncode:
        return None, run.stderr
    return [one for one in yaml.safe_load_all(run.stdout) if one], run.stderr


def of_kind(objects, kind):
    return [one for one in objects if one["kind"] == kind]


def judge(values, objects):
    names = {(one["kind"], one["metadata"]["name"]) for one in objects}
    assert len(names) == len(objects), "two objects of one kind have one name"
    for one in objects:
        for version in VERSIONS:
            kubernetes_validate.validate(one, version, strict=True)
    (deployment,) = of_kind(objects, "Deployment")
    pod = deployment["spec"]["template"]
    labels = pod["metadata"]["labels"]
    (container,) = pod["spec"]["containers"]
    selectors = [deployment["spec"]["selector"]["matchLabels"]]
    selectors += [one["spec"]["selector"] for one in of_kind(objects, "Service")]
    selectors += [one["spec"]["selector"]["matchLabels"] for one in of_kind(objects, "PodDisruptionBudget")]
    selectors += [one["spec"]["podSelector"]["matchLabels"] for one in of_kind(objects, "NetworkPolicy")]
    for selector in selectors:
        assert selector and selector.items() <= labels.items(), f"{selector} selects no pod"
    ports = {port["name"] for port in container["ports"]}
    for service in of_kind(objects, "Service"):
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    for source in container["envFrom"]:
        if "configMapRef" in source:
            assert ("ConfigMap", source["configMapRef"]["name"]) in names
        else:
            assert source["secretRef"]["name"] == values["existingSecret"]
    assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in pod["spec"]["volumes"]}
    assert ("ServiceAccount", pod["spec"]["serviceAccountName"]) in names

    # No request is lost: a new pod is ready before an old one stops, which gets requests no more by
    # then and has the time to answer those it accepted.
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["spec"]["terminationGracePeriodSeconds"] >= pause + 20 + 5
    assert bool(of_kind(objects, "PodDisruptionBudget")) == (deployment["spec"]["replicas"] > 1)

    settings = next(one for one in of_kind(objects, "ConfigMap") if "HUB_CLOUD_LISTEN" in one["data"])["data"]
    help = subprocess.run([HUB_CLOUD, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"\[env: (HUB_CLOUD_[A-Z0-9_]+)", help))
    assert settings.keys() <= known, settings.keys() - known
    for name, value in values["settings"].items():
        variable = "HUB_CLOUD_" + name.upper().replace("-", "_")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        assert settings.get(variable, "") == text, f"{variable} is {settings.get(variable)}"
    scheme = "HTTPS" if values.get("tlsSecret") else "HTTP"
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"]:
        assert container[probe]["httpGet"]["scheme"] == scheme
    for ingress in of_kind(objects, "Ingress"):
        (rule,) = ingress["spec"]["rules"]
        assert rule["host"] == "hubs.example.com"
        assert ("Service", rule["http"]["paths"][0]["backend"]["service"]["name"]) in names
    keys = [one for one in of_kind(objects, "ConfigMap") if one["metadata"]["name"].endswith("-release-keys")]
    placed = next(one for one in pod["spec"]["volumes"] if one["name"] == "release-keys")["projected"]["sources"]
    items = {item["key"]: item["path"] for item in placed[0]["configMap"]["items"] or []}
    assert items.keys() == (keys[0]["data"] or {}).keys()
    for kind, files in values.get("releaseKeys", {}).items():
        for file, key in files.items():
            assert keys[0]["data"][f"{kind}.{file}"] == key
            assert items[f"{kind}.{file}"] == f"{kind}/{file}"


def main():
    version = re.search(r'^version = "(.*)"', (CHART.parents[2] / "Cargo.toml").read_text(), re.MULTILINE)[1]
    assert ABOUT["version"] == ABOUT["appVersion"] == version, "the chart has another version than the service"
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    for name, values in {"least": LEAST, "full": FULL, "one replica": ONE}.items():
        objects, notes = rendered(values)
        assert objects, f"{name}: {notes}"
        judge(values, objects)
        assert "admin create" in notes
        print(f"{name}: {len(objects)} objects")
    for name, values in REFUSED.items():
        objects, reason = rendered(values)
        assert objects is None, f"{name} was accepted"
        print(f"refused, {name}: {reason.strip().splitlines()[-1][:160]}")


main()
