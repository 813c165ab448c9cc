"""A lamp as a GATT server: what a client sends it as ATT, and what it answers (Bluetooth Core Specification, Vol 3, Part F).

Service ff00 has the LED at ff01, which is written 01 and a level, and its state at ff02, which is notified after each write: the level.
A level of ff is written and never notified.
"""

import struct

ERROR, MTU_REQUEST, MTU_RESPONSE = 0x01, 0x02, 0x03
INFORMATION_REQUEST, BY_TYPE_REQUEST, READ_REQUEST, BY_GROUP_REQUEST = 0x04, 0x08, 0x0A, 0x10
WRITE_REQUEST, WRITE_COMMAND, NOTIFICATION = 0x12, 0x52, 0x1B
INVALID_HANDLE, NOT_SUPPORTED, NOT_FOUND = 0x01, 0x06, 0x0A
PRIMARY_SERVICE, CHARACTERISTIC, CLIENT_CONFIGURATION = 0x2800, 0x2803, 0x2902
LED, STATE, STATE_CONFIGURATION = 3, 5, 6
READ_AND_WRITE, NOTIFY = 0x0A, 0x10
LAST = 6
SILENT = 0xFF


class Lamp:
    def __init__(self):
        self.written = []
        self.disconnected()

    def disconnected(self):
        """A subscription ends with its connection."""
        self.subscribed = False

    def attributes(self):
        """By handle: type and value."""
        return {
            1: (PRIMARY_SERVICE, struct.pack("<H", 0xFF00)),
            2: (CHARACTERISTIC, struct.pack("<BHH", READ_AND_WRITE, LED, 0xFF01)),
            LED: (0xFF01, self.written[-1] if self.written else b"\x00"),
            4: (CHARACTERISTIC, struct.pack("<BHH", NOTIFY, STATE, 0xFF02)),
            STATE: (0xFF02, b""),
            STATE_CONFIGURATION: (CLIENT_CONFIGURATION, struct.pack("<H", self.subscribed)),
        }

    def answers(self, request):
        """What the lamp sends when it gets this, in order."""
        code = request[0]
        if code == MTU_REQUEST:
            return [struct.pack("<BH", MTU_RESPONSE, 23)]
        if code in (BY_GROUP_REQUEST, BY_TYPE_REQUEST, INFORMATION_REQUEST):
            return [self.found(request)]
        if code == READ_REQUEST:
            handle = struct.unpack_from("<H", request, 1)[0]
            known = self.attributes().get(handle)
            return [bytes([code + 1]) + known[1][:22] if known else self.error(code, handle, INVALID_HANDLE)]
        if code in (WRITE_REQUEST, WRITE_COMMAND):
            return self.write(code, struct.unpack_from("<H", request, 1)[0], request[3:])
        # Confirmations and commands are not answered.
        return [] if code & 0x40 or code == 0x1E else [self.error(code, 0, NOT_SUPPORTED)]

    @staticmethod
    def error(code, handle, reason):
        return struct.pack("<BBHB", ERROR, code, handle, reason)

    def found(self, request):
        code, first, last = struct.unpack_from("<BHH", request)
        between = [(handle, kind, value) for handle, (kind, value) in self.attributes().items() if first <= handle <= last]
        if code == INFORMATION_REQUEST:
            found = [struct.pack("<HH", handle, kind) for handle, kind, _ in between]
            head = bytes([code + 1, 1])
        else:
            wanted = struct.unpack_from("<H", request, 5)[0] if len(request) == 7 else None
            of_kind = [(handle, value) for handle, kind, value in between if kind == wanted]
            ends = struct.pack("<H", LAST) if code == BY_GROUP_REQUEST else b""
            found = [struct.pack("<H", handle) + ends + value for handle, value in of_kind]
            # Only those that are as long as the first.
            found = [item for item in found if len(item) == len(found[0])]
            head = bytes([code + 1, len(found[0])]) if found else b""
        if not found:
            return self.error(code, first, NOT_FOUND)
        return head + b"".join(found[:(23 - len(head)) // len(found[0])])

    def write(self, code, handle, value):
        answers = [bytes([code + 1])] if code == WRITE_REQUEST else []
        if handle == STATE_CONFIGURATION:
            self.subscribed = bool(value and value[0] & 1)
        elif handle == LED:
            self.written.append(value)
            if self.subscribed and value[1] != SILENT:
                answers.append(struct.pack("<BH", NOTIFICATION, STATE) + value[1:2])
        else:
            return [self.error(code, handle, INVALID_HANDLE)] if answers else []
        return answers
