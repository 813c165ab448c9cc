"""A scripted bluetoothd.

Runs python-dbusmock's bluez5 template on a private bus of its own and takes orders as JSON lines on standard input, one
answer a line on standard output. Where the template is too kind (discovery sessions, Powered, devices that vanish) the
behaviour of a real bluetoothd 5.66 is put in its place, so that a client which passes here is not surprised in the field.
It never touches the machine's own system bus.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

import dbus
import dbus.bus
import dbus.lowlevel
import dbus.service
from dbus.mainloop.glib import DBusGMainLoop
from dbusmock import mockobject
from dbusmock.templates import bluez5
from gi.repository import GLib

ADAPTER = "org.bluez.Adapter1"
DEVICE = "org.bluez.Device1"
MONITOR_MANAGER = "org.bluez.AdvertisementMonitorManager1"
MONITOR = "org.bluez.AdvertisementMonitor1"
GATT_SERVICE, CHARACTERISTIC = "org.bluez.GattService1", "org.bluez.GattCharacteristic1"
PROPERTIES = dbus.PROPERTIES_IFACE
SHORT_UUID_TAIL = "-0000-1000-8000-00805f9b34fb"
WRITABLE = {"Powered", "Alias", "Discoverable", "DiscoverableTimeout", "Pairable", "PairableTimeout"}

BUS_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


class Refused(Exception):
    """An order that cannot be carried out; its text is the answer."""


def tell(answer):
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def emit(path, interface, member, signature, *args):
    """Sends a signal from `path`, past the mock's own log and double conversion: the load generator lives on this."""
    message = dbus.lowlevel.SignalMessage(path, interface, member)
    message.append(*args, signature=signature)
    daemon.connection.send_message(message)


def change(path, interface, properties):
    mockobject.objects[path].props[interface].update(properties)
    emit(path, PROPERTIES, "PropertiesChanged", "sa{sv}as", interface, properties, [])


def interfaces_added(path):
    emit("/", mockobject.OBJECT_MANAGER_IFACE, "InterfacesAdded", "oa{sa{sv}}", path, mockobject.objects[path].props)


def remove(path):
    interfaces = list(mockobject.objects[path].props)
    mockobject.objects["/"].RemoveObject(path)
    emit("/", mockobject.OBJECT_MANAGER_IFACE, "InterfacesRemoved", "oas", path, interfaces)


class Radio:
    """One adapter: who is discovering on it, which faults are armed, and what was asked of it."""

    def __init__(self, name):
        self.name = name
        self.path = "/org/bluez/" + name
        self.sessions = {}  # unique bus name -> watch on that name
        self.monitors = {}  # (unique bus name, root path) -> (watch on that name, paths of the activated monitors)
        self.filters = {}  # unique bus name -> discovery filter
        self.faults = {}  # call -> [error or "hang", times left or None]
        self.calls = {}  # call -> how often it was made
        self.silent = False
        self.known = set()  # paths of devices that outlive discovery
        self.swallowed = 0

    @property
    def props(self):
        return mockobject.objects[self.path].props[ADAPTER]

    def hears(self):
        return self.listening() and not self.silent

    def listening(self):
        return bool(self.props["Discovering"]) or any(paths for _, paths in self.monitors.values())

    def devices(self):
        return [p for p in mockobject.objects if p.startswith(self.path + "/")]

    def faulty(self, call, fail):
        """Counts the call; true when a fault has dealt with it."""
        self.calls[call] = self.calls.get(call, 0) + 1
        GLib.idle_add(woken)
        fault = self.faults.get(call)
        if fault is None:
            return False
        if fault[1] is not None:
            fault[1] -= 1
            if fault[1] == 0:
                del self.faults[call]
        if fault[0] != "hang":
            fail(dbus.exceptions.DBusException("refused by order of the test", name=fault[0]))
        return True

    def start(self, sender):
        def owner_changed(owner):
            if owner == "" and sender in self.sessions:
                self.end(sender)

        self.sessions[sender] = daemon.connection.watch_name_owner(sender, owner_changed)
        self.set_discovering(True)

    def end(self, sender):
        self.sessions.pop(sender).cancel()
        if not self.sessions:
            self.set_discovering(False)

    def end_all(self):
        for watch in self.sessions.values():
            watch.cancel()
        self.sessions.clear()
        self.set_discovering(False)

    def set_discovering(self, on):
        if bool(self.props["Discovering"]) == on:
            return
        change(self.path, ADAPTER, {"Discovering": dbus.Boolean(on)})
        self.forget()

    def forget(self):
        """Once nobody listens, devices that were only heard and never paired go."""
        if not self.listening():
            for path in self.devices():
                if path not in self.known:
                    remove(path)
        woken()

    def watch_monitors(self, sender, root):
        """A client offers monitors below `root`: activate them, which is passive scanning."""
        def owner_changed(owner):
            if owner == "":
                self.drop_monitors(sender, root)

        def offered(objects):
            if (sender, root) in self.monitors:
                for path, interfaces in objects.items():
                    if MONITOR in interfaces:
                        call_client(sender, path, "Activate")
                        self.monitors[sender, root][1].append(path)
                woken()

        self.monitors[sender, root] = (daemon.connection.watch_name_owner(sender, owner_changed), [])
        daemon.connection.call_async(sender, root, mockobject.OBJECT_MANAGER_IFACE, "GetManagedObjects", "", (), offered, lambda error: None)

    def drop_monitors(self, sender, root):
        watch, _ = self.monitors.pop((sender, root), (None, None))
        if watch is not None:
            watch.cancel()
            self.forget()

    def set_powered(self, on):
        if not on:
            self.end_all()
            for sender, root in list(self.monitors):
                for path in self.monitors[sender, root][1]:
                    call_client(sender, path, "Release")
                self.drop_monitors(sender, root)
        if bool(self.props["Powered"]) != on:
            change(self.path, ADAPTER, {"Powered": dbus.Boolean(on)})
        woken()


def call_client(sender, path, method, signature="", *args):
    """A call to a client's monitor whose answer does not matter."""
    daemon.connection.call_async(sender, path, MONITOR, method, signature, args, None, None)


def bluez_error(name, text):
    return dbus.exceptions.DBusException(text, name="org.bluez.Error." + name)


def on_adapter(interface, signature):
    return dbus.service.method(interface, in_signature=signature, out_signature="", sender_keyword="sender",
                               async_callbacks=("reply", "fail"))


@on_adapter(ADAPTER, "")
def StartDiscovery(self, sender, reply, fail):
    radio = daemon.radio_at(self.path)
    if radio.faulty("StartDiscovery", fail):
        return
    if not radio.props["Powered"]:
        fail(bluez_error("NotReady", "Resource Not Ready"))
    elif sender in radio.sessions:
        fail(bluez_error("InProgress", "Operation already in progress"))
    else:
        reply()
        radio.start(sender)


@on_adapter(ADAPTER, "")
def StopDiscovery(self, sender, reply, fail):
    radio = daemon.radio_at(self.path)
    if radio.faulty("StopDiscovery", fail):
        return
    if sender not in radio.sessions:
        fail(bluez_error("Failed", "No discovery started"))
    else:
        reply()
        radio.end(sender)


@on_adapter(ADAPTER, "a{sv}")
def SetDiscoveryFilter(self, properties, sender, reply, fail):
    radio = daemon.radio_at(self.path)
    if radio.faulty("SetDiscoveryFilter", fail):
        return
    radio.filters[sender] = properties
    reply()


@on_adapter(MONITOR_MANAGER, "o")
def RegisterMonitor(self, root, sender, reply, fail):
    radio = daemon.radio_at(self.path)
    if radio.faulty("RegisterMonitor", fail):
        return
    if (sender, root) in radio.monitors:
        fail(bluez_error("AlreadyExists", "Already Exists"))
    else:
        reply()
        radio.watch_monitors(sender, root)


@on_adapter(MONITOR_MANAGER, "o")
def UnregisterMonitor(self, root, sender, reply, fail):
    radio = daemon.radio_at(self.path)
    if radio.faulty("UnregisterMonitor", fail):
        return
    if (sender, root) not in radio.monitors:
        fail(bluez_error("DoesNotExist", "Does Not Exist"))
    else:
        reply()
        radio.drop_monitors(sender, root)


@on_adapter(PROPERTIES, "ssv")
def Set(self, interface, name, value, sender, reply, fail):
    radio = daemon.radio_at(self.path)
    if radio.faulty(str(name), fail):
        return
    if interface != ADAPTER or name not in WRITABLE:
        fail(dbus.exceptions.DBusException("not writable", name="org.freedesktop.DBus.Error.PropertyReadOnly"))
        return
    reply()
    if name == "Powered":
        radio.set_powered(bool(value))
    elif radio.props[name] != value:
        change(self.path, ADAPTER, {name: value})


class Peripheral:
    """What a device that can be connected to has, and what was done with it."""

    def __init__(self, radio, path, services):
        self.radio, self.path, self.services = radio, path, services
        self.characteristics = {}  # object path -> (UUID, characteristic)
        self.sockets = {}  # UUID -> socket of who is notified
        self.written = []  # [UUID, hex, "request" or "command"]
        self.connects = 0

    def connect(self):
        self.connects += 1
        change(self.path, DEVICE, {"Connected": dbus.Boolean(True)})
        if not self.characteristics:
            for service_number, (service, characteristics) in enumerate(self.services.items(), 1):
                service_path = f"{self.path}/service{service_number:04x}"
                self.offer(service_path, GATT_SERVICE, {"UUID": full_uuid(service), "Device": dbus.ObjectPath(self.path), "Primary": True}, {})
                for number, (uuid, characteristic) in enumerate(characteristics.items(), 1):
                    path = f"{service_path}/char{service_number:02x}{number:02x}"
                    self.characteristics[path] = uuid, characteristic
                    properties = {"UUID": full_uuid(uuid), "Service": dbus.ObjectPath(service_path), "Value": dbus.Array([], signature="y")}
                    self.offer(path, CHARACTERISTIC, properties, {
                        "ReadValue": ("a{sv}", "ay", "", ReadValue), "WriteValue": ("aya{sv}", "", "", WriteValue),
                        "AcquireNotify": ("a{sv}", "hq", "", AcquireNotify)})
        change(self.path, DEVICE, {"ServicesResolved": dbus.Boolean(True)})

    @staticmethod
    def offer(path, interface, properties, methods):
        mockobject.objects["/"].AddObject(path, interface, properties, [])
        mockobject.objects[path].methods[interface] = methods
        interfaces_added(path)

    def disconnect(self):
        for end in self.sockets.values():
            end.close()
        self.sockets.clear()
        change(self.path, DEVICE, {"Connected": dbus.Boolean(False), "ServicesResolved": dbus.Boolean(False)})

    def write(self, uuid, value, kind):
        self.written.append([uuid, value.hex(), kind])
        for other, characteristic in self.characteristics.values():
            if characteristic.get("echoes") == uuid and other in self.sockets:
                self.sockets[other].send(value)

    def state(self):
        return {"connected": bool(mockobject.objects[self.path].props[DEVICE]["Connected"]), "connects": self.connects,
                "written": self.written, "subscribed": sorted(self.sockets)}


def of_gatt(interface, signature, returns):
    return dbus.service.method(interface, in_signature=signature, out_signature=returns, async_callbacks=("reply", "fail"))


@of_gatt(DEVICE, "", "")
def Connect(self, reply, fail):
    peripheral = daemon.peripherals[self.path]
    if not peripheral.radio.faulty("Connect", fail):
        peripheral.connect()
        reply()


@of_gatt(DEVICE, "", "")
def Disconnect(self, reply, fail):
    daemon.peripherals[self.path].disconnect()
    reply()


def peripheral_of(characteristic):
    return daemon.peripherals[characteristic.path.split("/service")[0]]


@of_gatt(CHARACTERISTIC, "a{sv}", "ay")
def ReadValue(self, options, reply, fail):
    peripheral = peripheral_of(self)
    if not peripheral.radio.faulty("ReadValue", fail):
        reply(dbus.Array(bytes.fromhex(peripheral.characteristics[self.path][1].get("value", "")), signature="y"))


@of_gatt(CHARACTERISTIC, "aya{sv}", "")
def WriteValue(self, value, options, reply, fail):
    peripheral = peripheral_of(self)
    if not peripheral.radio.faulty("WriteValue", fail):
        reply()
        peripheral.write(peripheral.characteristics[self.path][0], bytes(value), str(options.get("type", "request")))


@of_gatt(CHARACTERISTIC, "a{sv}", "hq")
def AcquireNotify(self, options, reply, fail):
    peripheral = peripheral_of(self)
    if not peripheral.radio.faulty("AcquireNotify", fail):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        peripheral.sockets[peripheral.characteristics[self.path][0]] = ours
        reply(dbus.types.UnixFd(theirs), dbus.UInt16(23))
        theirs.close()


class Daemon:
    """The mocked bluetoothd: a bus connection that owns org.bluez, and everything exported on it."""

    def __init__(self, address):
        self.address = address
        self.connection = None
        self.radios = {}
        self.peripherals = {}  # object path of the device -> Peripheral

    def start(self):
        if self.connection is not None:
            raise Refused("the daemon is running already")
        self.connection = dbus.bus.BusConnection(self.address)
        # Objects first, name last: a client that sees the name must find the objects.
        manager = mockobject.DBusMockObject(self.connection, "/", mockobject.OBJECT_MANAGER_IFACE, {}, os.devnull, True)
        mockobject.objects["/"] = manager
        manager.AddTemplate("bluez5", {"enable_monitor_api": False})
        self.connection.request_name("org.bluez")

    def stop(self, crash):
        self.running()
        for name in list(self.radios):
            if not crash:  # an orderly stop says good-bye, a crash does not
                self.remove_adapter(name)
        self.radios.clear()
        self.connection.release_name("org.bluez")
        for thing in list(mockobject.objects.values()):
            thing.remove_from_connection()
        mockobject.objects.clear()
        self.connection.close()
        self.connection = None
        woken()

    def running(self):
        if self.connection is None:
            raise Refused("the daemon is stopped: send start_daemon first")

    def radio(self, order):
        self.running()
        name = order.get("adapter", "hci0")
        if name not in self.radios:
            raise Refused(f"no adapter {name}: send add_adapter first")
        return self.radios[name]

    def radio_at(self, path):
        return self.radios[path.rpartition("/")[2]]

    def add_adapter(self, name, address, powered, passive):
        self.running()
        if name in self.radios:
            raise Refused(f"adapter {name} exists already")
        path = "/org/bluez/" + name
        # The template announces the adapter before it could be made ours, so its announcement is
        # held back.
        manager, bluez = mockobject.objects["/"], mockobject.objects["/org/bluez"]
        manager.EmitSignal = lambda *_: None
        try:
            bluez5.AddAdapter(bluez, name, "mock " + name)
        finally:
            del manager.EmitSignal
        adapter = mockobject.objects[path]
        for function, signature in ((StartDiscovery, ""), (StopDiscovery, ""), (SetDiscoveryFilter, "a{sv}")):
            adapter.methods[ADAPTER][function.__name__] = (signature, "", "", function)
        adapter.methods.setdefault(PROPERTIES, {})["Set"] = ("ssv", "", "", Set)
        if passive:
            adapter.props[MONITOR_MANAGER] = {"SupportedMonitorTypes": dbus.Array(["or_patterns"]), "SupportedFeatures": dbus.Array([], signature="s")}
            adapter.methods[MONITOR_MANAGER] = {f.__name__: ("o", "", "", f) for f in (RegisterMonitor, UnregisterMonitor)}
        adapter.props[ADAPTER].update({"Address": dbus.String(address), "Powered": dbus.Boolean(powered)})
        self.radios[name] = Radio(name)
        interfaces_added(path)
        woken()

    def remove_adapter(self, name):
        radio = self.radios[name]
        radio.known.clear()
        radio.set_powered(False)
        for path in radio.devices():
            remove(path)
        remove(radio.path)
        del self.radios[name]
        woken()


def byte_array(hex_text):
    return dbus.Array(bytes.fromhex(hex_text), signature="y", variant_level=1)


def full_uuid(uuid):
    return "0000" + uuid + SHORT_UUID_TAIL if len(uuid) == 4 else uuid


def device_properties(order):
    """The D-Bus properties named in an order, in the types a real bluetoothd gives them."""
    properties = {}
    for key, name, make in (("rssi", "RSSI", dbus.Int16), ("tx_power", "TxPower", dbus.Int16), ("name", "Name", dbus.String)):
        if key in order:
            properties[name] = make(order[key])
    if "name" in order:
        properties["Alias"] = dbus.String(order["name"])
    if "uuids" in order:
        properties["UUIDs"] = dbus.Array([full_uuid(u) for u in order["uuids"]], signature="s")
    if "manufacturer_data" in order:
        properties["ManufacturerData"] = dbus.Dictionary(
            {dbus.UInt16(int(k, 16)): byte_array(v) for k, v in order["manufacturer_data"].items()}, signature="qv")
    if "service_data" in order:
        properties["ServiceData"] = dbus.Dictionary(
            {full_uuid(k): byte_array(v) for k, v in order["service_data"].items()}, signature="sv")
    return properties


def report(radio, order):
    """The radio heard an advertisement. True when it was sent on the bus."""
    known = order.get("known", False)
    if not (radio.hears() or known):
        radio.swallowed += 1
        return False
    address = order["address"].upper()
    path = radio.path + "/dev_" + address.replace(":", "_")
    properties = device_properties(order)
    if known:
        radio.known.add(path)
    if path in mockobject.objects:
        change(path, DEVICE, properties)
        return True
    properties = {
        "Address": dbus.String(address), "AddressType": dbus.String(order.get("address_type", "random")),
        "Alias": dbus.String(address.replace(":", "-")), "Paired": dbus.Boolean(False), "Trusted": dbus.Boolean(False),
        "Blocked": dbus.Boolean(False), "LegacyPairing": dbus.Boolean(False), "Connected": dbus.Boolean(False),
        "UUIDs": dbus.Array([], signature="s"), "Adapter": dbus.ObjectPath(radio.path),
        "ServicesResolved": dbus.Boolean(False), **properties,
    }
    mockobject.objects["/"].AddObject(path, DEVICE, properties, [
        ("Connect", "", "", bluez5.Connect), ("Disconnect", "", "", bluez5.Disconnect), ("Pair", "", "", bluez5.Pair)])
    device = mockobject.objects[path]
    device.paired = device.connected = False
    interfaces_added(path)
    for (sender, _), (_, monitors) in radio.monitors.items():
        for monitor in monitors:
            call_client(sender, monitor, "DeviceFound", "o", path)
    return True


class Feed:
    """Reports at a steady rate: those of a file over and over, or of `devices` advertisers in turn, with three changed properties each and no two
    payloads alike."""

    TICK_MS = 5

    def __init__(self, radio, order):
        self.radio, self.rate = radio, float(order["rate"])
        self.addresses = [f"C0:00:00:00:{i >> 8:02X}:{i & 255:02X}" for i in range(int(order.get("devices", 300)))]
        self.reports = None
        if "reports" in order:
            with open(order["reports"], encoding="utf-8") as file:
                self.reports = [json.loads(line) for line in file]
            self.addresses = sorted({one["address"] for one in self.reports})
        self.total = int(order["count"]) if "count" in order else None
        self.sent, self.active_s, self.last, self.behind = 0, 0.0, None, 0
        self.timer = GLib.timeout_add(self.TICK_MS, self.tick)

    def tick(self):
        if daemon.radios.get(self.radio.name) is not self.radio or not self.radio.hears():
            self.radio = daemon.radios.get(self.radio.name, self.radio)  # the clock stands still until somebody listens
            self.last = None
            return True
        now = time.monotonic()
        if self.last is not None:
            self.active_s += now - self.last
        self.last = now
        due = int(self.active_s * self.rate)
        if self.total is not None:
            due = min(due, self.total)
        self.behind = max(self.behind, due - self.sent)
        while self.sent < due:
            self.one(self.sent)
            self.sent += 1
        if self.sent == self.total:
            daemon.connection.flush()
            orders.feed = None
            tell({"event": "fed", **self.summary()})
            return False
        return True

    def one(self, number):
        if self.reports:
            report(self.radio, self.reports[number % len(self.reports)])
            return
        index, turn = number % len(self.addresses), number // len(self.addresses)
        report(self.radio, {
            "address": self.addresses[index],
            "rssi": -40 - turn % 50,
            "manufacturer_data": {"0499": f"05{index:04x}{turn:08x}"},
            "service_data": {"fcd2": f"40{turn:08x}"},
        })

    def summary(self):
        return {"sent": self.sent, "devices": len(self.addresses), "active_s": round(self.active_s, 3),
                "rate": round(self.sent / self.active_s) if self.active_s else 0, "most_behind": self.behind}


waiting = []  # (deadline, condition, what) of every `wait` not yet answered


def woken():
    """Something a `wait` may be about has changed."""
    for entry in list(waiting):
        deadline, condition, order = entry
        met = condition()
        if met or time.monotonic() >= deadline:
            waiting.remove(entry)
            tell({"ok": True, "cmd": "wait"} if met else {"ok": False, "cmd": "wait", "error": f"gave up waiting: {order}"})
    return False


class Orders:
    """One method an order; what it returns joins the answer."""

    def __init__(self):
        self.feed = None

    def add_adapter(self, order):
        daemon.add_adapter(order.get("adapter", "hci0"), order.get("address", "00:AA:01:00:00:00"), order.get("powered", True),
                           order.get("passive", False))

    def remove_adapter(self, order):
        daemon.remove_adapter(daemon.radio(order).name)

    def set_powered(self, order):
        daemon.radio(order).set_powered(order["on"])

    def report(self, order):
        return {"delivered": report(daemon.radio(order), order)}

    def connectable(self, order):
        radio = daemon.radio(order)
        path = radio.path + "/dev_" + order["address"].upper().replace(":", "_")
        if path not in mockobject.objects:
            raise Refused(f"no device {order['address']} on {radio.name}: report it first")
        daemon.peripherals[path] = Peripheral(radio, path, order["services"])
        mockobject.objects[path].methods[DEVICE].update({"Connect": ("", "", "", Connect), "Disconnect": ("", "", "", Disconnect)})

    def peripheral(self, order):
        return daemon.peripherals[daemon.radio(order).path + "/dev_" + order["address"].upper().replace(":", "_")].state()

    def remove_device(self, order):
        radio = daemon.radio(order)
        path = radio.path + "/dev_" + order["address"].upper().replace(":", "_")
        if path not in mockobject.objects:
            raise Refused(f"no device {order['address']} on {radio.name}")
        radio.known.discard(path)
        remove(path)

    def end_discovery(self, order):
        daemon.radio(order).end_all()

    def fault(self, order):
        radio, call, error = daemon.radio(order), order["call"], order["error"]
        if error is None:
            radio.faults.pop(call, None)
        else:
            radio.faults[call] = [error if error == "hang" or "." in error else "org.bluez.Error." + error, order.get("times")]

    def silent(self, order):
        daemon.radio(order).silent = order["on"]

    def stop_daemon(self, order):
        daemon.stop(order.get("crash", False))

    def start_daemon(self, order):
        daemon.start()

    def start_feed(self, order):
        if self.feed is not None:
            raise Refused("a feed is running: send stop_feed first")
        self.feed = Feed(daemon.radio(order), order)

    def stop_feed(self, order):
        if self.feed is None:
            raise Refused("no feed is running")
        GLib.source_remove(self.feed.timer)
        summary, self.feed = self.feed.summary(), None
        return summary

    def state(self, order):
        return {"daemon": daemon.connection is not None, "adapters": {
            name: {"address": r.props["Address"], "powered": bool(r.props["Powered"]), "discovering": bool(r.props["Discovering"]),
                   "sessions": len(r.sessions), "monitors": sum(len(paths) for _, paths in r.monitors.values()),
                   "filters": [plain(r.filters[s]) for s in r.sessions if s in r.filters],
                   "devices": len(r.devices()), "calls": r.calls, "swallowed": r.swallowed}
            for name, r in daemon.radios.items()}}

    def wait(self, order):
        name, wanted = order.get("adapter", "hci0"), {k: order[k] for k in ("discovering", "powered") if k in order}
        keys = {"discovering": "Discovering", "powered": "Powered"}
        calls = order.get("calls", {})

        def met():
            radio = daemon.radios.get(name)
            return (radio is not None and all(bool(radio.props[keys[k]]) == v for k, v in wanted.items())
                    and ("listening" not in order or radio.listening() == order["listening"])
                    and all(radio.calls.get(c, 0) >= n for c, n in calls.items()))

        timeout_s = order.get("timeout_s", 10)
        waiting.append((time.monotonic() + timeout_s, met, order))
        GLib.timeout_add(int(timeout_s * 1000) + 1, woken)
        woken()
        return None

    def quit(self, order):
        loop.quit()


def plain(value):
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dbus.Boolean):
        return bool(value)
    return int(value) if isinstance(value, int) else str(value)


def obey(line):
    try:
        order = json.loads(line)
        cmd = order["cmd"]
        if cmd.startswith("_") or not callable(getattr(Orders, cmd, None)):
            raise Refused(f"no such command: {cmd}")
        result = getattr(orders, cmd)(order)
        if cmd != "wait":  # answered when what it waits for has come
            tell({"ok": True, "cmd": cmd, **(result or {})})
    except KeyError as missing:
        tell({"ok": False, "error": f"missing field {missing} in: {line}"})
    except (Refused, ValueError, TypeError, dbus.exceptions.DBusException) as refused:
        tell({"ok": False, "error": f"{refused} in: {line}"})


class Lines:
    """Cuts standard input into orders."""

    def __init__(self):
        self.unread = b""

    def readable(self, fd, _condition):
        chunk = os.read(fd, 65536)
        if not chunk:  # whoever gave the orders is gone
            loop.quit()
            return False
        *lines, self.unread = (self.unread + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                obey(line.decode())
        return True


def start_bus(folder):
    """A bus of our own in `folder`: its process and its address."""
    config, socket = os.path.join(folder, "bus.conf"), os.path.join(folder, "bus")
    with open(config, "w", encoding="utf-8") as file:
        file.write(BUS_CONFIG.format(socket=socket))
    # setpriv: the bus must not outlive this process, however it ends.
    with open(os.path.join(folder, "bus.log"), "wb+") as log:  # it grumbles about file limits, which is of no interest
        bus = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "dbus-daemon", "--nofork", "--print-address",
                                "--config-file=" + config], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        address = bus.stdout.readline().decode().strip().partition(",")[0]
        if not address:
            log.seek(0)
            sys.exit("mock-bluez: dbus-daemon did not start: " + log.read().decode())
    return bus, address


DBusGMainLoop(set_as_default=True)
loop = GLib.MainLoop()
orders = Orders()
with contextlib.nullcontext(sys.argv[1]) if sys.argv[1:] else tempfile.TemporaryDirectory(prefix="mock-bluez-") as scratch:
    bus, bus_address = start_bus(scratch)
    try:
        daemon = Daemon(bus_address)
        daemon.start()
        tell({"ready": True, "address": bus_address})
        GLib.io_add_watch(sys.stdin.fileno(), GLib.IO_IN | GLib.IO_HUP, Lines().readable)
        loop.run()
    finally:
        bus.kill()
        bus.wait()
