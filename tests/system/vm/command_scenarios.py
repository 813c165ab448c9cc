"""Commands on devices, from the app to the characteristic: a real bluetoothd connects to a lamp made of software."""

from vm import Failure, Radio, until

LAMP, OTHER = "C0:00:00:00:20:01", "C0:00:00:00:20:02"
SERVICE, LED, STATE = "ff00", "ff01", "ff02"


def expect(condition, what):
    if not condition:
        raise Failure(what)


def payload(number):
    """Flags of a device that can be connected to, and manufacturer data of company 0x04ff."""
    return (bytes([2, 1, 6, 7, 0xFF, 0xFF, 0x04]) + number.to_bytes(4, "big")).hex()


def adverts():
    return [{"address": LAMP, "rssi": -50, "every_ms": 300, "data": payload(7), "lamp": True},
            {"address": OTHER, "rssi": -60, "every_ms": 300, "data": payload(0), "counter": True}]


def action(name, timeout_ms):
    """Sets the level of the lamp and waits until it tells that it has."""
    level = {"type": "integer", "minimum": 0, "maximum": 255}
    steps = [{"service": SERVICE, "characteristic": LED, "operation": "WRITE", "value": "01{level}", "timeoutMillis": 60_000},
             {"service": SERVICE, "characteristic": STATE, "operation": "NOTIFY", "timeoutMillis": timeout_ms}]
    return {"actionId": name, "name": name, "transport": {"kind": "GATT", "steps": steps},
            "parameters": {"type": "object", "required": ["level"], "properties": {"level": level}}}


class Lamp:
    """The lamp as a person has it in the app."""

    def __init__(self, stage, radio):
        self.cloud, self.radio = stage.cloud, radio
        self.hub = until("the hub to be claimed", lambda: stage.agent_json("status")[1].get("hubUuid"), 90, 1)
        me = self.cloud.call("GET", "/app/profile")["userUuid"]
        self.cloud.call("POST", f"/tenant/hubs/{self.hub}/setup-delegations", {"userUuid": me})
        # Any device of company 0x04ff is one of this model.
        model = self.cloud.call("POST", "/tenant/device-catalog", {"name": "Lamp"})["deviceUuid"]
        self.cloud.call("POST", f"/tenant/device-catalog/{model}/identifiers", {"kind": "MANUFACTURER_ID", "value": "04ff"})
        device = {"deviceUuid": model, "name": "Lamp", "address": LAMP, "addressType": "RANDOM"}
        self.id = self.cloud.call("POST", "/tenant/devices", device)["deviceInstanceId"]
        # To the person, what the hub heard before it was theirs does not count.
        until("the lamp to be heard since the hub is the person's", self.of_person, 120, 1)
        until("the hub to be online", lambda: self.cloud.call("GET", f"/app/hubs/{self.hub}")["online"], 120, 1)

    def of_person(self):
        return [device for device in self.cloud.call("GET", f"/app/devices?hubUuid={self.hub}") if device["deviceInstanceId"] == self.id]

    def give(self, action_id, level, wait=10):
        return self.cloud.call("POST", f"/app/devices/{self.id}/commands?wait={wait}",
                               {"actionId": action_id, "parameters": {"level": level}})

    def settled(self, command):
        path = f"/app/devices/{self.id}/commands/{command['commandUuid']}"

        def ended():
            now = self.cloud.call("GET", path)
            return now if now["status"] not in ("QUEUED", "SENT") else None
        return until("the command to end", ended, 150, 1)

    def state(self):
        return self.radio.status()["lamp"]


def a_lamp_is_dimmed(stage):
    """What is written in the app is written to the lamp, and what the lamp notifies is the result, while the hub goes on scanning. A
    command that a kill interrupts is reported and not repeated, and the lamp is let go."""
    stage.ready()
    with Radio(stage.vm, adverts()) as radio:
        lamp = Lamp(stage, radio)
        for name, timeout_ms in (("dim", 60_000), ("stuck", 110_000)):
            stage.cloud.call("POST", "/tenant/action-definitions", action(name, timeout_ms))
        before = len(stage.heard(OTHER))
        done = lamp.settled(lamp.give("dim", 42))
        expect(done["status"] == "SUCCEEDED", f"the command ended so: {done}")
        values = [step.get("value") for step in done["result"]["steps"]]
        expect(values == [None, "2a"], f"the results are {values}")
        expect(lamp.state()["written"] == ["012a"], f"the lamp was written {lamp.state()}")
        until("the hub to disconnect", lambda: not lamp.state()["connected"], 60)
        stage.heard(OTHER, after=before + 2, timeout_s=120)
        radio.until_scanning(60)

        # The lamp takes this level and never says so.
        stuck = lamp.give("stuck", 255, wait=0)
        until("the lamp to be written", lambda: lamp.state()["written"] == ["012a", "01ff"], 120)
        pid = stage.show("MainPID")["MainPID"]
        stage.vm.sh("systemctl kill -s KILL hub-agent.service")
        stage.until_replaced(pid)
        failed = lamp.settled(stuck)
        expect((failed["status"], failed["error"]["code"]) == ("FAILED", "INTERRUPTED"), f"the command ended so: {failed}")
        until("the hub to disconnect", lambda: not lamp.state()["connected"], 60)
        # And the hub carries out commands again.
        done = lamp.settled(lamp.give("dim", 7))
        expect(done["status"] == "SUCCEEDED", f"the command ended so: {done}")
        expect(lamp.state()["written"] == ["012a", "01ff", "0107"], f"the lamp was written {lamp.state()}")


COMMAND_SCENARIOS = [a_lamp_is_dimmed]
