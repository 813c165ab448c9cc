"""A Bluetooth controller made of software: it appears through /dev/vhci as real hardware does, and hears just the advertisements it is given.

    radio.py ADVERTS_FILE STATUS_FILE [--address C4:11:22:33:44:55]

ADVERTS_FILE holds a JSON list of {"address", "address_type"? (random), "rssi", "data" (hex, the whole advertising payload), "every_ms",
"counter"?}, and is read again when another one takes its place. With "counter" the last four bytes count up, so that no two of its adverts
are alike. Instead of "data" it may have "frames", a list of [address, data] that are sent one after the other; then it falls silent. An
advert is "sent" only while the kernel has scanning switched on. With "lamp" its sender can be connected to, one at a time, and is the lamp of
lamp.py; it is not on the air while it is connected. STATUS_FILE holds {"scanning", "active" (asks for scan responses), "sent": {address: how many},
"lamp": {"connected", "connections", "subscribed", "written" []}}, written twice a second and at SIGTERM. Killing the process unplugs the controller.
"""

import argparse
import json
import os
import select
import signal
import struct
import sys
import time

from lamp import Lamp

COMMAND, ACL, EVENT, VENDOR = 0x01, 0x02, 0x04, 0xFF  # packet types of the HCI transport
COMMAND_COMPLETE, COMMAND_STATUS, COMPLETED_PACKETS, DISCONNECTED, LE_META = 0x0E, 0x0F, 0x13, 0x05, 0x3E
REMOTE_VERSION, CONNECTED, UPDATED, REMOTE_FEATURES = 0x0C, 0x01, 0x03, 0x04  # the last three within LE_META
UNKNOWN_COMMAND = b"\x01"
LE_SET_SCAN_PARAMETERS, LE_SET_SCAN_ENABLE = 0x200B, 0x200C
DISCONNECT, READ_REMOTE_VERSION = 0x0406, 0x041D
LE_CREATE_CONNECTION, LE_CANCEL_CONNECTION, LE_UPDATE_CONNECTION, LE_READ_REMOTE_FEATURES = 0x200D, 0x200E, 0x2013, 0x2016
# Commands that are answered with a status, and later with an event.
BEGUN = {DISCONNECT, READ_REMOTE_VERSION, LE_CREATE_CONNECTION, LE_UPDATE_CONNECTION, LE_READ_REMOTE_FEATURES}
CONNECTABLE, NONCONNECTABLE = 0, 3
CONNECTION = 0x0040
ENDED_BY_US, NO_CONNECTION = 0x16, 0x02
ATT = 4
ADDRESS_TYPES = {"public": 0, "random": 1}

# Commands answered with success and nothing else: masks, resets, and what sets parameters nobody
# reads here.
ACCEPTED = {0x0C01, 0x0C03, 0x0C13, 0x0C16, 0x0C18, 0x0C24, 0x0C52, 0x0C63, 0x0C6D,
            0x2001, 0x2005, 0x2006, 0x2008, 0x2009, 0x200A, 0x200B, 0x200C, 0x2010, 0x2011, 0x2012}


def supported_commands():
    """The bit map of Read Local Supported Commands: the LE set without extended scanning, which the kernel then does not use."""
    bitmap = bytearray(64)
    for octet, bits in ((5, 0xC0), (14, 0x28), (15, 0x02), (25, 0xF7), (26, 0xFF), (27, 0xFD), (28, 0x0F)):
        bitmap[octet] = bits
    return bytes(bitmap)


class Controller:
    def __init__(self, address):
        self.scanning = self.active = False
        self.lamp, self.connected, self.connections, self.wanted, self.received = Lamp(), False, 0, None, b""
        self.replies = {
            0x1001: struct.pack("<BHBHH", 9, 0, 9, 0x05F1, 0),  # version: Bluetooth 5.0, Linux Foundation
            0x1002: supported_commands(),
            0x1003: bytes([0, 0, 0, 0, 0x60, 0, 0, 0]),  # features: LE, and no classic Bluetooth
            0x1005: struct.pack("<HBHH", 27, 0, 0, 0),
            0x1009: over_the_air(address),
            0x2002: struct.pack("<HB", 27, 8),
            0x2003: bytes(8),
            0x2007: bytes(1),
            0x200F: bytes([16]),
            0x2017: bytes(16),
            0x2018: os.urandom(8),
            0x201C: bytes.fromhex("ffffffffff030000"),
            0x202A: bytes([16]),
        }
        self.fd = os.open("/dev/vhci", os.O_RDWR | os.O_NONBLOCK)
        os.write(self.fd, bytes([VENDOR, 0]))

    def read(self):
        packet = os.read(self.fd, 1024)
        if packet[0] == COMMAND:
            opcode, length = struct.unpack_from("<HB", packet, 1)
            self.obey(opcode, packet[4:4 + length])
        elif packet[0] == ACL:
            self.take(struct.unpack_from("<H", packet, 1)[0] >> 12 & 3, packet[5:])

    def obey(self, opcode, parameters):
        if opcode in BEGUN:
            self.event(COMMAND_STATUS, struct.pack("<BBH", 0, 1, opcode))
            self.begin(opcode, parameters)
            return
        if opcode in self.replies:
            result = b"\x00" + self.replies[opcode]
        elif opcode in ACCEPTED or opcode == LE_CANCEL_CONNECTION:
            result = b"\x00"
        else:
            result = UNKNOWN_COMMAND
        if opcode == LE_SET_SCAN_PARAMETERS:
            self.active = bool(parameters[0])
        if opcode == LE_SET_SCAN_ENABLE:
            self.scanning = bool(parameters[0])
        self.event(COMMAND_COMPLETE, struct.pack("<BH", 1, opcode) + result)
        if opcode == LE_CANCEL_CONNECTION and self.wanted:
            self.connection_complete(NO_CONNECTION)

    def event(self, code, body):
        os.write(self.fd, bytes([EVENT, code, len(body)]) + body)

    def begin(self, opcode, parameters):
        if opcode == LE_CREATE_CONNECTION:
            self.wanted = parameters[5:12]  # the kind of the address, and the address; it connects when it is on the air
        elif opcode == DISCONNECT:
            self.connected = False
            self.lamp.disconnected()
            self.event(DISCONNECTED, struct.pack("<BHB", 0, CONNECTION, ENDED_BY_US))
        elif opcode == READ_REMOTE_VERSION:
            self.event(REMOTE_VERSION, struct.pack("<BHBHH", 0, CONNECTION, 9, 0x05F1, 0))
        elif opcode == LE_READ_REMOTE_FEATURES:
            self.event(LE_META, struct.pack("<BBH", REMOTE_FEATURES, 0, CONNECTION) + bytes(8))
        elif opcode == LE_UPDATE_CONNECTION:
            self.event(LE_META, struct.pack("<BBH", UPDATED, 0, CONNECTION) + parameters[4:10])

    def connection_complete(self, status=0):
        """Ends the attempt to connect: with the connection, of which we are the central, or without."""
        body = struct.pack("<BBHB", CONNECTED, status, CONNECTION, 0) + self.wanted + struct.pack("<HHHB", 40, 0, 200, 0)
        self.wanted = None
        if status == 0:
            self.connected, self.received = True, b""
            self.connections += 1
        self.event(LE_META, body)

    def take(self, boundary, data):
        """A piece of what the kernel sends to the lamp: the first, or one that continues (boundary 1)."""
        self.received = self.received + data if boundary == 1 else data
        self.event(COMPLETED_PACKETS, struct.pack("<BHH", 1, CONNECTION, 1))
        if len(self.received) < 4:
            return
        length, channel = struct.unpack_from("<HH", self.received)
        if channel == ATT and len(self.received) >= 4 + length > 4:
            for answer in self.lamp.answers(self.received[4:4 + length]):
                frame = struct.pack("<HH", len(answer), ATT) + answer
                os.write(self.fd, struct.pack("<BHH", ACL, CONNECTION | 2 << 12, len(frame)) + frame)

    def hear(self, advert, address, payload):
        """Reports an advert. Whoever is waited for is connected with its next one."""
        kind = CONNECTABLE if advert.get("lamp") else NONCONNECTABLE
        body = (bytes([2, 1, kind, ADDRESS_TYPES[advert.get("address_type", "random")]]) + over_the_air(address)
                + bytes([len(payload)]) + payload + struct.pack("b", advert["rssi"]))
        self.event(LE_META, body)

    def is_wanted(self, advert):
        kind = ADDRESS_TYPES[advert.get("address_type", "random")]
        return bool(advert.get("lamp")) and self.wanted == bytes([kind]) + over_the_air(advert["address"])


def over_the_air(address):
    return bytes.fromhex(address.replace(":", ""))[::-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("adverts_file")
    parser.add_argument("status_file")
    parser.add_argument("--address", default="C4:11:22:33:44:55")
    arguments = parser.parse_args()
    adverts, sent, due = [], {}, {}
    status_due, read_file = 0.0, None

    def read_adverts():
        nonlocal adverts, read_file
        file = os.stat(arguments.adverts_file).st_ino
        if file != read_file:
            read_file = file
            with open(arguments.adverts_file, encoding="utf-8") as content:
                adverts = json.load(content)
            for advert in adverts:
                sent.setdefault(advert["address"], 0)
                due.setdefault(advert["address"], 0.0)

    def write_status():
        temporary = arguments.status_file + ".new"
        with open(temporary, "w", encoding="utf-8") as file:
            lamp = {"connected": controller.connected, "connections": controller.connections, "subscribed": controller.lamp.subscribed,
                    "written": [value.hex() for value in controller.lamp.written]}
            json.dump({"scanning": controller.scanning, "active": controller.active, "sent": sent, "lamp": lamp}, file)
        os.rename(temporary, arguments.status_file)

    def stop(*_):
        write_status()
        sys.exit(0)

    def send(advert):
        number = sent[advert["address"]]
        if "frames" not in advert:
            payload = bytes.fromhex(advert["data"])
            if advert.get("counter"):
                payload = payload[:-4] + struct.pack(">I", number)
            controller.hear(advert, advert["address"], payload)
        elif number < len(advert["frames"]):
            address, data = advert["frames"][number]
            controller.hear(advert, address, bytes.fromhex(data))
        else:
            return
        sent[advert["address"]] += 1

    # The kernel gives up a new controller that answers no command for two seconds, and a long list
    # takes that long to read on a busy machine.
    read_adverts()
    controller = Controller(arguments.address)
    signal.signal(signal.SIGTERM, stop)
    poll = select.poll()
    poll.register(controller.fd, select.POLLIN)
    while True:
        while poll.poll(0):
            controller.read()
        now = time.monotonic()
        if now >= status_due:
            read_adverts()
            write_status()
            status_due = now + 0.5
        for advert in adverts:
            if controller.is_wanted(advert):
                controller.connection_complete()
        if controller.scanning:
            for advert in adverts:
                if now >= due[advert["address"]] and not (advert.get("lamp") and controller.connected):
                    send(advert)
                    due[advert["address"]] = now + advert["every_ms"] / 1000
        wake = min([status_due, *(due[advert["address"]] for advert in adverts)]) if controller.scanning else status_due
        poll.poll(max(1, int((wake - time.monotonic()) * 1000)))


main()
