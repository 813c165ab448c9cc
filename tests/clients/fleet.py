"""A tenant with an API key, and a hub that uploads an event five times a second, also while the service is away for a moment.

    python3 fleet.py http://127.0.0.1:8080 > environment &

Prints HUB_SERVICE_URL, HUB_TENANT and HUB_API_KEY as shell assignments, then uploads until it is ended."""

import datetime
import json
import sys
import time
import urllib.error
import urllib.request
import uuid

URL = sys.argv[1]


def call(path, body, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()} | {"content-type": "application/json"}
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)["data"]


def main():
    account = {"email": f"{uuid.uuid4()}@example.com", "password": "a long password"}
    person = {"authorization": "Bearer " + call("/auth/register", account)["accessToken"]}
    tenant = person | {"x-tenant-uuid": call("/tenant/tenants", {"name": "Warehouse"}, **person)["tenantUuid"]}
    key = call("/tenant/api-keys", {"name": "clients", "scopes": ["hubs:read", "ble:read"]}, **tenant)["apiKey"]
    code = call("/tenant/hubs/claim-codes", {}, **tenant)["claimCode"]
    hub = call("/v1/hubs/claim", {"claimCode": code, "deviceInstanceId": str(uuid.uuid4())})
    print(f"HUB_SERVICE_URL={URL}\nHUB_TENANT={tenant['x-tenant-uuid']}\nHUB_API_KEY={key}", flush=True)
    sys.stdout.close()
    while True:
        event = {"observedAt": datetime.datetime.now(datetime.UTC).isoformat(), "address": "C0:00:00:00:00:01", "rssi": -61}
        body = {"batchUuid": str(uuid.uuid4()), "events": [event]}
        while True:
            try:
                call("/v1/ble/events", body, authorization="Bearer " + hub["accessToken"])
                break
            except urllib.error.HTTPError as error:
                if error.code < 500 and error.code != 429:
                    raise
            except OSError:
                pass
            time.sleep(0.1)
        time.sleep(0.2)


main()
