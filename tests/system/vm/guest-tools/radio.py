"""A Bluetooth controller made of software: it appears through /dev/vhci as real hardware does, and hears just the adverts it is told to.

    radio.py ADVERTS_FILE STATUS_FILE [--address C4:11:22:33:44:55]

ADVERTS_FILE holds a JSON list of {"address", "address_type"? (random), "rssi", "data" (hex, the whole advertising payload), "every_ms",
"counter"?}, and is read again when another one takes its place. With "counter" the last four bytes count up, so that no two of its adverts
are alike. Instead of "data" it may have "frames", a list of [address, data] that are sent one after the other; then it falls silent. An
advert is "sent" only while the kernel has scanning switched on. STATUS_FILE holds {"scanning", "active" (asks for scan responses), "sent": {address: how many}}, written twice a second and at SIGTERM.
Killing the process unplugs the controller.
"""

import argparse
import json
import os
import select
import signal
import struct
import sys
import time

COMMAND, EVENT, VENDOR = 0x01, 0x04, 0xFF  # packet types of the HCI transport
COMMAND_COMPLETE, LE_META = 0x0E, 0x3E
UNKNOWN_COMMAND = b"\x01"
LE_SET_SCAN_PARAMETERS, LE_SET_SCAN_ENABLE = 0x200B, 0x200C
NONCONNECTABLE = 3
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

    def obey(self, opcode, parameters):
        if opcode in self.replies:
            result = b"\x00" + self.replies[opcode]
        elif opcode in ACCEPTED:
            result = b"\x00"
        else:
            result = UNKNOWN_COMMAND
        if opcode == LE_SET_SCAN_PARAMETERS:
            self.active = bool(parameters[0])
        if opcode == LE_SET_SCAN_ENABLE:
            self.scanning = bool(parameters[0])
        body = struct.pack("<BH", 1, opcode) + result
        os.write(self.fd, bytes([EVENT, COMMAND_COMPLETE, len(body)]) + body)

    def hear(self, advert, address, payload):
        body = (bytes([2, 1, NONCONNECTABLE, ADDRESS_TYPES[advert.get("address_type", "random")]]) + over_the_air(address)
                + bytes([len(payload)]) + payload + struct.pack("b", advert["rssi"]))
        os.write(self.fd, bytes([EVENT, LE_META, len(body)]) + body)


def over_the_air(address):
    return bytes.fromhex(address.replace(":", ""))[::-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("adverts_file")
    parser.add_argument("status_file")
    parser.add_argument("--address", default="C4:11:22:33:44:55")
    arguments = parser.parse_args()
    controller = Controller(arguments.address)
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
            json.dump({"scanning": controller.scanning, "active": controller.active, "sent": sent}, file)
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

    signal.signal(signal.SIGTERM, stop)
    poll = select.poll()
    poll.register(controller.fd, select.POLLIN)
    while True:
        now = time.monotonic()
        if now >= status_due:
            read_adverts()
            write_status()
            status_due = now + 0.5
        if controller.scanning:
            for advert in adverts:
                if now >= due[advert["address"]]:
                    send(advert)
                    due[advert["address"]] = now + advert["every_ms"] / 1000
        wake = min([status_due, *(due[advert["address"]] for advert in adverts)]) if controller.scanning else status_due
        if poll.poll(max(1, int((wake - time.monotonic()) * 1000))):
            controller.read()


main()
