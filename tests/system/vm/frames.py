"""What advertisers of devices send: whole advertising payloads of formats that others published, each with what it says. Encrypted frames are
encrypted here as their formats describe it, with counters that rise."""

import uuid

FLAGS = bytes([2, 1, 6])


def part(kind, data):
    return bytes([len(data) + 1, kind]) + data


def manufacturer_data(company, data):
    return FLAGS + part(0xFF, company.to_bytes(2, "little") + data)


def service_data(service, data):
    return FLAGS + part(0x16, service.to_bytes(2, "little") + data)


def mac(address):
    return bytes.fromhex(address.replace(":", ""))


def sealed(key, nonce, plain, associated=None):
    """AES-CCM with a tag of four bytes, at the end. Imported late: the runner installs the package."""
    from cryptography.hazmat.primitives.ciphers.aead import AESCCM
    return AESCCM(key, tag_length=4).encrypt(nonce, plain, associated)


def resolvable_address(key, number):
    """A resolvable private address (Bluetooth Core Specification, Vol 3, Part H, 2.2.2): 24 bits that begin with 01, and their hash."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    random = (0x400000 | (number + 1) * 0x2F35B5 & 0x3FFFFF).to_bytes(3, "big")
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    hashed = cipher.update(bytes(13) + random) + cipher.finalize()
    return ":".join(f"{byte:02X}" for byte in random + hashed[-3:])


def temperature(number):
    """In hundredths of a degree: 10 more with each frame, for 50 frames."""
    return 2000 + 10 * (number % 50)


def ruuvi_5(address, number):
    """Ruuvi data format 5 (docs.ruuvi.com)."""
    power = (2977 - 1600) << 5 | (4 + 40) // 2
    fields = (temperature(number) * 2, 53490 // 2, 102400 - 50000, 4, -4, 1036, power)
    data = bytes([5]) + b"".join((field & 0xFFFF).to_bytes(2, "big") for field in fields) + bytes([66]) + number.to_bytes(2, "big") + mac(address)
    said = {"temperature": temperature(number) / 100, "humidity": 66.8625, "pressure": 102400, "voltage": 2.977, "tx_power": 4,
            "movement_counter": 66, "measurement_sequence": number}
    return manufacturer_data(0x0499, data), said


def thermopro_357(name, number):
    """A ThermoPro TP357 (layout published by the thermopro-ble and Theengs projects): the first two bytes, where a company identifier belongs,
    are C2 and the lower byte of the temperature, so that each temperature looks like another company."""
    tenths, humidity = temperature(number) // 10, 30 + number % 40
    data = (tenths >> 8).to_bytes(1, "big") + bytes([humidity, 0x02, 0x2C])
    said = {"temperature": tenths / 10, "humidity": humidity, "battery_low": 0}
    return manufacturer_data((tenths & 0xFF) << 8 | 0xC2, data) + part(0x09, name.encode()), said


def ibeacon(proximity, major, minor):
    """iBeacon (Apple, Proximity Beacon Specification). It says the same each time."""
    data = bytes([2, 0x15]) + uuid.UUID(proximity).bytes + major.to_bytes(2, "big") + minor.to_bytes(2, "big") + (-59 & 0xFF).to_bytes(1, "big")
    return manufacturer_data(0x004C, data), {"tx_power": -59}


def eddystone(namespace, instance, number):
    """Eddystone: UID, and every other time TLM."""
    listed = FLAGS + part(0x03, (0xFEAA).to_bytes(2, "little"))
    if number % 2 == 0:
        data, said = bytes([0, 0xEE]) + bytes.fromhex(namespace + instance), {"tx_power": -18}
    else:
        raw = 20 * 256 + 32 * (number % 50)
        data = bytes([0x20, 0]) + (3056).to_bytes(2, "big") + raw.to_bytes(2, "big") + number.to_bytes(4, "big") + (20 * number).to_bytes(4, "big")
        said = {"voltage": 3.056, "temperature": raw / 256, "advertisement_count": number, "uptime": 2 * number}
    return listed + part(0x16, (0xFEAA).to_bytes(2, "little") + data), said


def bthome_values(number):
    """Temperature and humidity as BTHome v2 has them, and what they say."""
    plain = bytes([0x02]) + temperature(number).to_bytes(2, "little") + bytes([0x03]) + (5055).to_bytes(2, "little")
    return plain, {"temperature": temperature(number) / 100, "humidity": 50.55}


def bthome(number):
    """BTHome v2 (bthome.io/format), with the number of the packet."""
    plain, said = bthome_values(number)
    return service_data(0xFCD2, bytes([0x40, 0x00, number & 0xFF]) + plain), {"packet_id": number & 0xFF, **said}


def bthome_encrypted(address, key, number):
    """BTHome v2, encrypted (bthome.io/encryption): the nonce is the address, the service, the device information and the counter."""
    plain, said = bthome_values(number)
    service, information, counter = (0xFCD2).to_bytes(2, "little"), bytes([0x41]), (1000 + number).to_bytes(4, "little")
    text = sealed(key, mac(address) + service + information + counter, plain)
    return service_data(0xFCD2, information + text[:-4] + counter + text[-4:]), said


def mibeacon_5(address, key, number):
    """MiBeacon 5 of a Xiaomi LYWSD03MMC, encrypted, with its address (Xiaomi IoT, Mijia BLE broadcasting protocol): the nonce is the address
    backwards, the product and the counter, which is in two parts."""
    head, product, counter = (0x5858).to_bytes(2, "little"), (0x055B).to_bytes(2, "little"), (300 + number).to_bytes(4, "little")
    backwards = mac(address)[::-1]
    plain = (0x1004).to_bytes(2, "little") + bytes([2]) + (temperature(number) // 10).to_bytes(2, "little")
    text = sealed(key, backwards + product + counter, plain, bytes([0x11]))
    data = head + product + counter[:1] + backwards + text[:-4] + counter[1:] + text[-4:]
    return service_data(0xFE95, data), {"temperature": temperature(number) / 100, "frame_counter": counter[0]}
