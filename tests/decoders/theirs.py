"""Reads frames with decoders of PyPI, in a process of their own. Each line of standard input is a frame; each line of standard output is
`{decoder: {quantity: [values]}}` with our names and units, without the decoders that read nothing."""

import json
import logging
import sys

import TheengsDecoder
from bluemaestro_ble import BlueMaestroBluetoothDeviceData
from bthome_ble import BTHomeBluetoothDeviceData
from govee_ble import GoveeBluetoothDeviceData
from habluetooth import BluetoothServiceInfoBleak
from inkbird_ble import INKBIRDBluetoothDeviceData
from mopeka_iot_ble import MopekaIOTBluetoothDeviceData
from oralb_ble import OralBBluetoothDeviceData
from qingping_ble import QingpingBluetoothDeviceData
from ruuvitag_ble import RuuvitagBluetoothDeviceData
from sensirion_ble import SensirionBluetoothDeviceData
from sensorpush_ble import SensorPushBluetoothDeviceData
from thermobeacon_ble import ThermoBeaconBluetoothDeviceData
from thermopro_ble import ThermoProBluetoothDeviceData
from xiaomi_ble import XiaomiBluetoothDeviceData

DECODERS = {
    "bluemaestro-ble": BlueMaestroBluetoothDeviceData,
    "bthome-ble": BTHomeBluetoothDeviceData,
    "govee-ble": GoveeBluetoothDeviceData,
    "inkbird-ble": INKBIRDBluetoothDeviceData,
    "mopeka-iot-ble": MopekaIOTBluetoothDeviceData,
    "oralb-ble": OralBBluetoothDeviceData,
    "qingping-ble": QingpingBluetoothDeviceData,
    "ruuvitag-ble": RuuvitagBluetoothDeviceData,
    "sensirion-ble": SensirionBluetoothDeviceData,
    "sensorpush-ble": SensorPushBluetoothDeviceData,
    "thermobeacon-ble": ThermoBeaconBluetoothDeviceData,
    "thermopro-ble": ThermoProBluetoothDeviceData,
    "xiaomi-ble": XiaomiBluetoothDeviceData,
}

# Their names, without a number at the end, and what a value is multiplied with.
QUANTITIES = {
    "temperature": ("temperature", 1),
    "humidity": ("humidity", 1),
    "battery": ("battery", 1),
    "pressure": ("pressure", 100),
    "carbon_dioxide": ("co2", 1),
    "co2": ("co2", 1),
    "voltage": ("voltage", 1),
    "illuminance": ("illuminance", 1),
    "moisture": ("moisture", 1),
    "conductivity": ("conductivity", 1e-4),
    "pm25": ("pm25", 1),
    "pm10": ("pm10", 1),
    "mass": ("mass", 1),
    "power": ("power", 1),
    "energy": ("energy", 3.6e6),
    "dew_point": ("dew_point", 1),
    "speed": ("speed", 1),
    "count": ("count", 1),
    "rotation": ("rotation", 1),
}
THEENGS = {
    "tempc": ("temperature", 1),
    "hum": ("humidity", 1),
    "batt": ("battery", 1),
    "volt": ("voltage", 1),
    "pres": ("pressure", 100),
    "co2": ("co2", 1),
    "lux": ("illuminance", 1),
    "moi": ("moisture", 1),
    "fer": ("conductivity", 1e-4),
    "pm25": ("pm25", 1),
    "pm10": ("pm10", 1),
}


def full(uuid):
    return uuid if len(uuid) > 4 else f"0000{uuid}-0000-1000-8000-00805f9b34fb"


def info(frame):
    return BluetoothServiceInfoBleak(
        name=frame.get("name", ""), address=frame.get("address", "00:00:00:00:00:00"), rssi=-60,
        manufacturer_data={int(company, 16): bytes.fromhex(data) for company, data in frame.get("manufacturerData", {}).items()},
        service_data={full(uuid): bytes.fromhex(data) for uuid, data in frame.get("serviceData", {}).items()},
        service_uuids=[full(uuid) for uuid in frame.get("serviceUuids", [])], source="x", device=None, advertisement=None,
        connectable=False, time=0, tx_power=0)


def sensors(decoder, service_info):
    try:
        update = decoder().update(service_info)
    except Exception:
        return {}
    found = {}
    for key, value in update.entity_values.items():
        name = key.key.rstrip("0123456789").rstrip("_")
        if key.key in QUANTITIES:
            name = key.key
        if name in QUANTITIES and isinstance(value.native_value, (int, float)):
            quantity, factor = QUANTITIES[name]
            if update.entity_descriptions[key].native_unit_of_measurement == "mV":
                factor = 0.001
            found.setdefault(quantity, []).append(value.native_value * factor)
    return found


def theengs(frame):
    given = {"id": frame.get("address", ""), "name": frame.get("name", "")}
    for company, data in frame.get("manufacturerData", {}).items():
        given["manufacturerdata"] = company[2:] + company[:2] + data
    for uuid, data in frame.get("serviceData", {}).items():
        given["servicedatauuid"], given["servicedata"] = uuid, data
    try:
        text = TheengsDecoder.decodeBLE(json.dumps(given))
        found = json.loads(text, strict=False) if text else {}
    except Exception:
        return {}
    return {quantity: [found[key] * factor] for key, (quantity, factor) in THEENGS.items() if isinstance(found.get(key), (int, float))}


logging.disable(logging.CRITICAL)
for line in sys.stdin:
    frame = json.loads(line)
    service_info = info(frame)
    found = {name: sensors(decoder, service_info) for name, decoder in DECODERS.items()}
    found["theengsdecoder"] = theengs(frame)
    print(json.dumps({name: values for name, values in found.items() if values}))
