"""Reads discovery documents with Home Assistant's own code. Usage: home_assistant.py < published.json

It reads {"documents": {topic: document}, "events": [event of each document's device]} and fails
unless Home Assistant takes each document as it is, and its template reads the device's value.
"""

import json
import sys

from homeassistant.components.mqtt import binary_sensor, sensor
from homeassistant.components.mqtt.discovery import TOPIC_MATCHER
from homeassistant.components.sensor.const import DEVICE_CLASS_STATE_CLASSES, DEVICE_CLASS_UNITS
from homeassistant.helpers.template import TemplateEnvironment

SCHEMAS = {"sensor": sensor.DISCOVERY_SCHEMA, "binary_sensor": binary_sensor.DISCOVERY_SCHEMA}
# What this version does not know yet. From homeassistant/components/sensor/const.py of version
# 2026.11.0, of which later versions of Python are required.
LATER_UNITS = {"pm4": {"µg/m³"}, "energy": {"J"}}
LATER_STATE_CLASSES = {"pm4": {"measurement"}}


def rendered(document, event):
    variables = {"value_json": event, "this": {"state": "unknown"}}
    environment = TemplateEnvironment(None, limited=False, strict=True, log_fn=None)
    return environment.from_string(document["value_template"]).render(variables)


def check(topic, document, event):
    matched = TOPIC_MATCHER.match(topic.removeprefix("homeassistant/"))
    component, node, quantity = matched.group("component", "node_id", "object_id")
    given = dict(document)
    device_class = given.get("device_class")
    if device_class is not None:
        units = {str(unit) for unit in DEVICE_CLASS_UNITS.get(device_class, ())} | LATER_UNITS.get(device_class, set())
        assert given["unit_of_measurement"] in units, f"{device_class} has no such unit"
        state_classes = {str(one) for one in DEVICE_CLASS_STATE_CLASSES.get(device_class, ())}
        state_classes |= LATER_STATE_CLASSES.get(device_class, set())
        assert given.get("state_class") in state_classes | {None}, f"{device_class} has no such state class"
        if device_class not in DEVICE_CLASS_UNITS:
            del given["device_class"]
    taken = SCHEMAS[component](given)
    lost = given.keys() - taken.keys()
    assert not lost, f"unknown are {lost}"
    assert document["unique_id"] == f"{node}_{quantity}"

    # With the value, and with an event that does not have it.
    [measured] = [one for one in event["measurements"] if one["quantity"] == quantity]
    value = measured["value"]
    expected = {True: "ON", False: "OFF"}[value] if isinstance(value, bool) else str(value)
    assert rendered(document, event) == expected, rendered(document, event)
    # An empty text is ignored for a number and a binary sensor; for a text it would be the state.
    is_number = "unit_of_measurement" in document or "state_class" in document
    is_kept = "" if is_number or component == "binary_sensor" else "unknown"
    assert rendered(document, {"measurements": []}) == is_kept


published = json.load(sys.stdin)
events = {f"hub_cloud_{event['deviceInstanceId']}": event for event in published["events"]}
classes = set()
for topic, document in published["documents"].items():
    try:
        check(topic, document, events[document["device"]["identifiers"][0]])
    except Exception as error:
        raise AssertionError(f"{topic}: {document}") from error
    classes.add(document.get("device_class"))
assert len(classes) > 20, classes
