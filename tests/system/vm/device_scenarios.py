"""Devices as their tenant sees them, from the air to the values: what a real hub hears through a real bluetoothd."""

import datetime
import json
import time

import frames
from vm import Failure, Radio, advertisement_monitors, until

BEACON = {"uuid": "f7826da6-4fa2-4e98-8024-bc5b71e0893e", "major": 7, "minor": 21}
EDDYSTONE = {"namespace": "edd1ebeac04e5defa017", "instance": "0b1e0b1e0b1e"}
IDENTITY_KEY = bytes.fromhex("ec0234a357c8ad05341010a60a397d9b")
BIND_KEY = bytes.fromhex("231d39c1d7cc1ab1aee224cd096db932")
MI_KEY = bytes.fromhex("e9ea895fac7cca6d30532432a516f3a8")
LATE_KEY = bytes.fromhex("0f0e0d0c0b0a09080706050403020100")
EVERY_MS = 2000
# More than a scenario lasts.
FRAMES = 900
# A device with changing addresses has each for so many frames.
FRAMES_OF_AN_ADDRESS = 12
# A device is silent when it was not received for ten minutes after the minute in which it was.
ALLOWANCE_S = 660


def expect(condition, what):
    if not condition:
        raise Failure(what)


class Sender:
    """A device and what it sends; `frame(number)` is a payload and what that says. Without a fixed address it is known by its key."""

    def __init__(self, name, template, identity, frame, address=None):
        self.name, self.template, self.identity, self.address = name, template, identity, address
        made = [frame(number) for number in range(FRAMES)]
        self.frames = [[address or frames.resolvable_address(IDENTITY_KEY, number // FRAMES_OF_AN_ADDRESS), payload.hex()]
                       for number, (payload, _) in enumerate(made)]
        self.said = [said for _, said in made]
        self.id = None

    def advert(self):
        return {"address": self.frames[0][0], "rssi": -58, "every_ms": EVERY_MS, "frames": self.frames}

    def said_this(self, values):
        """Whether one of the frames says what the service has read."""
        return any(all(name in values and abs(values[name] - value) < 1e-6 for name, value in said.items()) for said in self.said)


def senders():
    address = "C0:00:00:00:1{}:01".format
    named = {place: address(place) for place in range(1, 8)}
    return {sender.name: sender for sender in (
        Sender("ruuvi", "ruuvi/ruuvitag", {"address": named[1]}, lambda n: frames.ruuvi_5(named[1], n), named[1]),
        Sender("ibeacon", "apple/ibeacon", {"beacon": BEACON}, lambda n: frames.ibeacon(*BEACON.values()), named[2]),
        Sender("eddystone", "eddystone/beacon", {"address": named[3], "beacon": EDDYSTONE},
               lambda n: frames.eddystone(*EDDYSTONE.values(), n), named[3]),
        Sender("rotating", "bthome/v2", {"identityResolvingKey": IDENTITY_KEY.hex()}, frames.bthome),
        Sender("bthome", "bthome/v2", {"address": named[5], "bindKey": BIND_KEY.hex()},
               lambda n: frames.bthome_encrypted(named[5], BIND_KEY, n), named[5]),
        Sender("mibeacon", "xiaomi/lywsd03mmc", {"address": named[6], "bindKey": MI_KEY.hex()},
               lambda n: frames.mibeacon_5(named[6], MI_KEY, n), named[6]),
        Sender("late", "bthome/v2", {"address": named[7]}, lambda n: frames.bthome_encrypted(named[7], LATE_KEY, n), named[7]),
    )}


class Devices:
    """Devices in the catalog of the tenant."""

    def __init__(self, cloud, senders):
        self.cloud, self.senders = cloud, senders
        models = {}
        for sender in senders.values():
            if sender.template not in models:
                # Hubs show once in this time that a device is there, although it says nothing new.
                model = {"template": sender.template, "expectedIntervalSeconds": 60}
                models[sender.template] = cloud.call("POST", "/tenant/device-catalog", model)["deviceUuid"]
            device = {"deviceUuid": models[sender.template], "name": sender.name, **sender.identity}
            sender.id = cloud.call("POST", "/tenant/devices", device)["deviceInstanceId"]

    def device(self, name):
        return self.cloud.call("GET", f"/tenant/devices/{self.senders[name].id}")

    def values(self, name):
        """What was read of a device, the latest first."""
        return self.cloud.call("GET", f"/tenant/devices/{self.senders[name].id}/sensor-data?size=100")

    def events(self, name, **filters):
        query = "".join(f"&{key}={value}" for key, value in filters.items())
        return self.cloud.call("GET", f"/tenant/ble/events?deviceInstanceId={self.senders[name].id}&size=100{query}")

    def timeline(self, name, since, to):
        return self.cloud.call("GET", f"/tenant/devices/{self.senders[name].id}/timeline?from={since}&to={to}")


def instant(moment=None):
    """A time as the API takes it; now unless given in seconds."""
    moment = time.time() if moment is None else moment
    return datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def six_advertisers(stage):
    """Devices of six kinds, two of them encrypted and one with changing addresses, are recognised and read by service and hub; one that
    stops is distinguished from a hub that lost its adapter; a key that is set late reads what was stored before."""
    stage.ready()
    devices = Devices(stage.cloud, senders())
    live = stage.cloud.follow("/tenant/stream/ble/events")
    radio = Radio(stage.vm, [sender.advert() for sender in devices.senders.values()])
    radio.plug()
    try:
        all_are_read(devices, live)
        radio.hears([sender.advert() for sender in devices.senders.values() if sender.name != "ruuvi"])
        stopped_at = time.time()
        the_hub_knows_them(stage, devices)
        its_addresses_are_one_device(devices)
        time.sleep(max(0, stopped_at + 100 - time.time()))
        route_selects(devices, time.time())
    finally:
        unplugged_from = time.time()
        radio.unplug()
        unplugged_to = time.time()
        stage.cloud.call("PUT", "/tenant/ble/route", {"rules": [], "otherwise": "FORWARD"})
    silence_is_told_from_blindness(devices, stopped_at, unplugged_from, unplugged_to)
    a_late_key_reads_what_was_stored(devices)


def all_are_read(devices, live):
    """Stored and live, each of the six with what it sent."""
    known = [sender for sender in devices.senders.values() if sender.name != "late"]
    for sender in known:
        items = until(f"values of {sender.name}", lambda: len(found := devices.values(sender.name)) > 3 and found, 90, 1)
        wrong = [item["values"] for item in items if not sender.said_this(item["values"])]
        expect(not wrong, f"{sender.name} never said {wrong}")
    until("values of the six in the live stream", lambda: {sender.id for sender in known} <= {
        event.get("deviceInstanceId") for event in live if event["measurements"]}, 30)
    expect(not [event for event in live if event.get("counterStatus")], "a counter that rises was taken for a replay")
    for name, status in (("bthome", "VERIFIED"), ("mibeacon", "VERIFIED"), ("late", "NONE")):
        expect(devices.device(name)["bindKeyStatus"] == status, f"the key of {name} is not {status}: {devices.device(name)}")
    unread = devices.events("late")
    expect(unread and all(event["processingStatus"] == "MATCHED" and not event["measurements"] for event in unread),
           f"without its key, nothing can be read: {unread}")


def the_hub_knows_them(stage, devices):
    """Rules make the hub ask for devices and keys. It then names and reads them itself, and reports only what changes."""
    stage.cloud.call("PUT", "/tenant/ble/route", {"otherwise": "DROP", "rules": [
        {"layer": "HUB", "match": {"known": True}, "action": "ON_CHANGE", "quantities": {"temperature": 0.1}}]})
    until("the rule to be in force on the hub", lambda: stage.agent_json("status")[1].get("scanConfigRules") == 1, 60, 1)

    def known():
        lines = [json.loads(line) for line in stage.vm.sh("runuser -u hub-agent -- hub-agent scan --json --duration 10").splitlines()]
        read = {line.get("deviceInstanceId") for line in lines if line.get("measurements")}
        named = {line.get("deviceName") for line in lines}
        on_air = [sender for sender in devices.senders.values() if sender.name != "ruuvi"]
        return {sender.name for sender in on_air} <= named and {sender.id for sender in on_air if sender.name != "late"} <= read

    until("the hub to know and read the devices itself", known, 90)


def its_addresses_are_one_device(devices):
    """A device that changes its address is known by its identity resolving key."""
    def addresses():
        return {event["address"] for event in devices.events("rotating")}

    until("three addresses of one device", lambda: len(addresses()) >= 3, 90, 2)
    strangers = addresses() - {address for address, _ in devices.senders["rotating"].frames}
    expect(not strangers, f"taken for the device: {strangers}")


def route_selects(devices, since):
    """With the rule, what says the same again is reported once in a while, and what changes always."""
    while_heard = {"from": instant(since), "to": instant(since + 50)}
    time.sleep(max(0, since + 50 - time.time()))
    # A busy machine uploads what it heard a while later.
    until("ten reports of the MiBeacon, which says something new every 2 s", lambda: len(devices.events("mibeacon", **while_heard)) >= 10, 60, 1)
    constant = len(devices.events("ibeacon", **while_heard))
    expect(constant <= 2, f"the iBeacon says nothing new, and was reported {constant} times in 50 s")


def silence_is_told_from_blindness(devices, stopped_at, unplugged_from, unplugged_to):
    """The device that stopped was silent while the hub listened, and what came then was the hub's blindness."""
    heard = devices.values("ruuvi")
    since, last = heard[-1]["observedAt"], seconds(heard[0]["observedAt"])
    expect(last <= stopped_at + 60, f"heard at {last}, and stopped at {stopped_at}")
    time.sleep(max(0, last + ALLOWANCE_S - time.time()))
    periods = until("the device to be reported as silent", lambda: len(found := devices.timeline("ruuvi", since, instant())) > 1 and found, 90, 2)
    expect([period["status"] for period in periods] == ["HEARD", "SILENT", "HUB_BLIND"], f"the timeline is {periods}")
    _, silent, blind = periods
    expect(last < seconds(silent["from"]) <= last + 125, f"heard last at {instant(last)}: {periods}")
    expect(unplugged_from - 60 < seconds(blind["from"]) < unplugged_to + 60, f"unplugged from {instant(unplugged_from)} to {instant(unplugged_to)}: {periods}")


def a_late_key_reads_what_was_stored(devices):
    """The device's key was never known while it was on the air."""
    expect(not devices.values("late"), "values without a key")
    stored = len(devices.events("late"))
    devices.cloud.call("PATCH", f"/tenant/devices/{devices.senders['late'].id}", {"bindKey": LATE_KEY.hex()})
    items = until("what was stored to be read", lambda: len(found := devices.values("late")) >= stored and found, 60, 1)
    wrong = [item["values"] for item in items if not devices.senders["late"].said_this(item["values"])]
    expect(not wrong, f"it never said {wrong}")


def company_ids_that_are_values(stage):
    """A thermometer whose company identifier is a part of its value: bluetoothd may keep each identifier that it heard, and show them all.
    Of those, only the one that was just heard is read, in the active as in the passive mode."""
    stage.ready()
    name, address = "TP357 (2A01)", "C0:00:00:00:18:01"
    thermometer = Sender("thermometer", "thermopro/tp357", {"address": address}, lambda n: frames.thermopro_357(name, n), address)
    devices = Devices(stage.cloud, {thermometer.name: thermometer})
    with Radio(stage.vm, [thermometer.advert()]) as radio:
        only_the_latest_is_read(devices, thermometer)
        with advertisement_monitors(stage.vm):
            until("the scan to be passive", lambda: radio.status()["scanning"] and not radio.status()["active"], 60)
            only_the_latest_is_read(devices, thermometer)


def only_the_latest_is_read(devices, thermometer):
    """Ten events come, each with a value that was sent, and later than the one before: an older value would step back."""
    since = instant()

    def read():
        found = devices.events(thermometer.name, **{"from": since})
        values = [{value["quantity"]: value["value"] for value in event["measurements"]} for event in found if event["measurements"]]
        return len(values) >= 10 and values

    values = until("ten events with values", read, 120, 1)
    wrong = [one for one in values if not thermometer.said_this(one)]
    expect(not wrong, f"the thermometer never said {wrong}")
    # The latest event is first. Humidity rises by one with each frame until it begins again.
    humidity = [one["humidity"] for one in values]
    back = [(earlier, later) for later, earlier in zip(humidity, humidity[1:]) if later <= earlier and later != 30]
    expect(not back, f"an older value was read after a later one: {humidity}")


DEVICE_SCENARIOS = [six_advertisers, company_ids_that_are_values]
