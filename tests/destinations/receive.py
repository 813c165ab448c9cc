"""Receives what the example `send` sends, with other people's programs. Usage: receive.py DIRECTORY"""

import base64
import json
import os
import pathlib
import secrets
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
import standardwebhooks
import svix.webhooks
import zstandard

HERE = pathlib.Path(__file__).resolve().parent
ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SEND = TARGET / "debug/examples/send"
QUANTITIES = TARGET / "debug/examples/quantities"
WORK = pathlib.Path(sys.argv[1])

EVENT = {
    "bleEventId": 1, "observedAt": "2026-01-31T09:30:00.000000Z", "deviceInstanceId": 7,
    "hubUuid": "0d6c6f1e-7c6e-4a43-8f5c-6e2a1a3a4b5c", "address": "C4:11:00:00:00:01",
    "name": "Küche, \"unten\"",
    "measurements": [
        {"quantity": "temperature", "value": 21.5, "unit": "Cel"},
        {"quantity": "co2", "value": 400, "unit": "ppm"},
        {"quantity": "motion", "value": True, "kind": "STATE"},
        {"quantity": "button", "value": "press \"a\\b\"", "kind": "EVENT"},
    ],
}


def send(destination, **more):
    given = json.dumps({"destination": destination, "events": [EVENT], **more})
    done = subprocess.run([SEND], input=given, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port, program):
    for _ in range(600):
        assert program.poll() is None, f"{program.args[0]} has ended"
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"{program.args[0]} does not listen")


def start(*arguments, port):
    with open(WORK / f"{port}.log", "w") as log:
        program = subprocess.Popen(arguments, stdout=log, stderr=log)
    wait_for(port, program)
    return program


def signatures():
    """Both secrets verify while they overlap; a changed body, id or secret does not."""
    received = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            received.append((dict(self.headers.items()), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/hook"
    messages, genuine = [], []
    new, old, other = ("whsec_" + base64.b64encode(secrets.token_bytes(32)).decode() for _ in range(3))
    for count in (1, 3):
        more = {"events": [EVENT] * count, "isBatch": count > 1, "secret": new, "previousSecret": old}
        assert send({"kind": "HTTP", "url": url}, id="msg_1", **more) == {"error": None, "status": 204, "body": None}
        headers, body = received.pop()
        headers = {name.lower(): value for name, value in headers.items()}
        assert json.loads(body) == (EVENT if count == 1 else [EVENT] * count)
        for secret, text, changed, is_genuine in (
            (new, body, {}, True),
            (old, body, {}, True),
            (other, body, {}, False),
            (new, body + b" ", {}, False),
            (new, body, {"webhook-id": "msg_2"}, False),
            (new, body, {"webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}, False),
        ):
            messages.append({"secret": secret, "body": text.decode(), "headers": {**headers, **changed}})
            genuine.append(is_genuine)
    server.shutdown()
    libraries = ["standardwebhooks", "svix"]
    expected = [libraries if is_genuine else [] for is_genuine in genuine]
    assert [verified_in_python(message) for message in messages] == expected
    environment = os.environ | {"PATH_OF_MODULES": str(WORK)}
    done = subprocess.run(["node", HERE / "verify.mjs"], input=json.dumps(messages), capture_output=True, text=True,
                          env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected, done.stdout


def verified_in_python(message):
    """The libraries of PyPI that hold a message for genuine."""
    holds = []
    for library, refused in ((standardwebhooks, standardwebhooks.webhooks.WebhookVerificationError),
                             (svix.webhooks, svix.webhooks.WebhookVerificationError)):
        try:
            library.Webhook(message["secret"]).verify(message["body"], message["headers"])
        except refused:
            continue
        holds.append(library.__name__.split(".")[0])
    return holds


def influx():
    """Every type of value, with characters that have to be escaped, as InfluxDB reads it."""
    port, rpc = free_port(), free_port()
    config = WORK / "influxdb.conf"
    config.write_text(
        f'reporting-disabled = true\nbind-address = "127.0.0.1:{rpc}"\n[meta]\ndir = "{WORK}/meta"\n'
        f'[data]\ndir = "{WORK}/data"\nwal-dir = "{WORK}/wal"\n[http]\nbind-address = "127.0.0.1:{port}"\n'
        "[monitor]\nstore-enabled = false\n"
    )
    program = start("influxd", "-config", str(config), port=port)
    try:
        base = f"http://127.0.0.1:{port}"

        def query(text):
            data = urllib.parse.urlencode({"q": text, "db": "hubs", "epoch": "ns"}).encode()
            return json.load(urllib.request.urlopen(f"{base}/query", data))["results"][0]

        query("CREATE DATABASE hubs")
        destination = {"kind": "HTTP", "url": f"{base}/write?db=hubs", "format": "INFLUX_LINE"}
        later = {**EVENT, "observedAt": "2026-01-31T09:31:00Z", "address": "a,b =c\\"}
        empty = {**EVENT, "measurements": []}
        outcome = send(destination, events=[EVENT, empty, later], isBatch=True)
        assert outcome["status"] == 204, outcome
        series = query("SELECT * FROM ble")["series"][0]
        rows = [dict(zip(series["columns"], values)) for values in series["values"]]
        assert [row["time"] for row in rows] == [1769851800000000000, 1769851860000000000], rows
        first = {name: rows[0][name] for name in ("temperature", "co2", "motion", "button", "device", "address")}
        assert first == {"temperature": 21.5, "co2": 400, "motion": True, "button": 'press "a\\b"', "device": "7",
                         "address": "C4:11:00:00:00:01"}, first
        assert rows[1]["address"] == "a,b =c/", rows
        # A value of another type is InfluxDB's to refuse: 400, a message that is at fault.
        wrong = {**EVENT, "measurements": [{"quantity": "co2", "value": "much"}]}
        assert send(destination, events=[wrong])["error"].startswith("Message"), "a field conflict"
    finally:
        program.kill()
        program.wait()


def objects():
    """Objects of a store, read with Amazon's own client."""
    port = free_port()
    program = start(sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port), port=port)
    try:
        endpoint = f"http://127.0.0.1:{port}"
        keys = {"aws_access_key_id": "id", "aws_secret_access_key": "secret", "region_name": "eu-central-1"}
        client = boto3.client("s3", endpoint_url=endpoint, **keys)
        client.create_bucket(Bucket="readings", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        auth = {"type": "S3", "accessKeyId": "id", "secretAccessKey": "secret", "region": "eu-central-1",
                "endpoint": endpoint}
        outcome = send({"kind": "S3", "url": "s3://readings/a/b", "auth": auth}, id="msg_1", events=[EVENT, EVENT])
        assert outcome["error"] is None, outcome
        [found] = client.list_objects_v2(Bucket="readings")["Contents"]
        assert found["Key"].startswith("a/b/20") and found["Key"].endswith("/msg_1.ndjson.zst"), found
        body = client.get_object(Bucket="readings", Key=found["Key"])["Body"].read()
        lines = zstandard.ZstdDecompressor().stream_reader(body).read().decode().splitlines()
        assert [json.loads(line) for line in lines] == [EVENT, EVENT]
        missing = send({"kind": "S3", "url": "s3://missing/a", "auth": auth})
        assert missing["status"] == 404 and missing["error"].startswith("Receiver"), missing
    finally:
        program.kill()
        program.wait()


def discovery():
    """What Home Assistant learns of every quantity, as its own code reads it."""
    port = free_port()
    config = WORK / "mosquitto.conf"
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    broker = start("mosquitto", "-c", str(config), port=port)
    try:
        quantities = json.loads(subprocess.run([QUANTITIES], capture_output=True, check=True, timeout=60).stdout)
        values = {"STATE": True, "EVENT": "press"}
        measurements = [{**one, "value": values.get(one["kind"], 21.5)} for one in quantities]
        # Not every value of a kind is of one type.
        measurements += [{**one, "quantity": f"{one['quantity']}_text", "value": "on"} for one in measurements[-3:]]
        chunks = [measurements[at:at + 50] for at in range(0, len(measurements), 50)]
        chunks.append([{"quantity": "temperature", "value": 70.5, "unit": "degF", "kind": "MEASUREMENT"}])
        expected = sum(map(len, chunks))
        events = [{**EVENT, "deviceInstanceId": number, "measurements": chunk} for number, chunk in enumerate(chunks, 1)]
        subscribed = ["mosquitto_sub", "-h", "127.0.0.1", "-p", str(port), "-t", "homeassistant/#", "-F", "%j",
                      "-C", str(expected), "-W", "60"]
        destination = {"kind": "MQTT", "url": f"mqtt://127.0.0.1:{port}", "topic": "hubs/{{deviceInstanceId}}",
                       "homeAssistantDiscovery": True}
        outcome = send(destination, events=events, isBatch=True)
        assert outcome["error"] is None, outcome
        # They are retained.
        lines = subprocess.run(subscribed, capture_output=True, text=True, check=True, timeout=90).stdout.splitlines()
    finally:
        broker.kill()
        broker.wait()
    documents = {line["topic"]: json.loads(line["payload"]) for line in map(json.loads, lines)}
    assert len(documents) == expected, len(documents)
    published = json.dumps({"documents": documents, "events": events})
    done = subprocess.run([WORK / "home-assistant/bin/python", HERE / "home_assistant.py"], input=published,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


for part in (signatures, influx, objects, discovery):
    began = time.monotonic()
    part()
    print(f"{part.__name__}: ok, {time.monotonic() - began:.1f} s", flush=True)
