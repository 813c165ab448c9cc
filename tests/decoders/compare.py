"""Compares what the library reads with what decoders of PyPI and npm read, frame by frame: the
frames of the models' tests, and each with bytes changed or cut off. A disagreement that
register.json does not explain fails, and so does an explanation that nothing needs any more.
`--without-npm` leaves the decoders of npm out."""

import collections
import functools
import json
import math
import os
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIBRARY = ROOT / "protocol/adverts/library"
MUTATIONS = 40
# Some decoders round to a tenth. Those of npm do not round.
TOLERANCE = 0.051
NPM = ("advlib-ble-manufacturers", "advlib-ble-services")
# What those of npm have one word for, and we several.
KINDRED = {
    "opening": ["door", "tamper", "light"],
    "motion": ["moving", "vibration", "occupancy"],
    "movement_counter": ["count"],
}


def mutated(frame, chance):
    """The frame with a payload that has other bytes, or fewer."""
    kinds = [kind for kind in ("manufacturerData", "serviceData") if frame.get(kind)]
    kind = chance.choice(kinds)
    key = chance.choice(sorted(frame[kind]))
    data = bytearray.fromhex(frame[kind][key])
    if not data or chance.random() < 0.1:
        data = data[: chance.randrange(len(data) + 1)]
    else:
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(len(data))] = chance.choice([0, 0x7F, 0x80, 0xFF, chance.randrange(256)])
    return {**frame, kind: {**frame[kind], key: data.hex()}}


def frames():
    """Frames, and whether each is as it was published."""
    for path in sorted(LIBRARY.glob("*/*.json")):
        for test in json.loads(path.read_text())["tests"]:
            frame = {key: test[key] for key in ("address", "name", "manufacturerData", "serviceData", "serviceUuids") if key in test}
            if "secrets" in test or not (frame.get("manufacturerData") or frame.get("serviceData")):
                continue
            yield frame, True
            # Each frame is damaged in its own way, so that a new one changes nothing of the others.
            chance = random.Random(json.dumps(frame, sort_keys=True))
            for _ in range(MUTATIONS):
                yield mutated(frame, chance), False


def read(command, lines):
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def same(ours, theirs, quantity, decoder):
    """Whether two lists of values are equal, in whichever order."""
    if any(isinstance(value, str) for value in ours + theirs):
        return sorted(ours) == sorted(theirs)
    if decoder in NPM:
        step, share = 1e-6, 1e-6
    else:
        step, share = 1 if quantity == "pressure" else TOLERANCE, 1e-4
    return len(ours) == len(theirs) and all(abs(a - b) <= max(step, abs(a) * share) for a, b in zip(sorted(ours), sorted(theirs)))


@functools.cache
def metrics(model):
    return json.loads((LIBRARY / f"{model}.json").read_text())["metrics"]


def comparable(ours):
    """Our values by quantity. A truth is 0 or 1, and the buttons of a model that has such are bits
    of one number."""
    values = collections.defaultdict(list)
    if not ours:
        return values
    pressed = 0
    for key, value in ours["values"].items():
        quantity, _, index = key.rstrip("]").partition("[")
        if quantity == "button":
            if value == "press":
                pressed |= 1 << (int(index) if index.isdigit() else 0)
        elif isinstance(value, (int, float, str)):
            values[quantity].append(value)
    if "button" in metrics(ours["model"]):
        values["button"] = [pressed]
    return values


def disagreements(ours, theirs, is_published, ranges):
    """Of one frame: (decoder, model, quantity, what, example). Of a frame that nobody sent, values are compared and not who refuses it: that depends on how many of its
    constant bytes a decoder looks at. A value outside the range of its quantity is none."""
    model = ours["model"] if ours else None
    values = comparable(ours)
    for decoder, found in theirs.items():
        for quantity, read_by_them in found.items():
            least, most = ranges[quantity] or (0, math.inf)
            sane = [value for value in read_by_them if isinstance(value, str) or least <= value <= most]
            if not sane:
                continue
            read_by_us = [values[name] for name in [quantity, *KINDRED.get(quantity, [])] if values[name]]
            if not read_by_us:
                if is_published:
                    yield decoder, model, quantity, "ABSENT", read_by_them
            elif not any(same(one, sane, quantity, decoder) for one in read_by_us):
                yield decoder, model, quantity, "OTHER", [read_by_us[0], read_by_them]


def main():
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "debug/examples/read"
    given = list(frames())
    lines = "".join(json.dumps(frame) + "\n" for frame, _ in given)
    ours = read([program], lines)
    theirs = read([sys.executable, HERE / "theirs.py"], lines)
    without_npm = "--without-npm" in sys.argv
    if not without_npm:
        for their, more in zip(theirs, read(["node", HERE / "advlib.mjs"], lines), strict=True):
            their.update(more)
    [ranges] = read([program, "quantities"], "")
    found = collections.defaultdict(list)
    compared = collections.Counter()
    for (frame, is_published), our, their in zip(given, ours, theirs, strict=True):
        for decoder, values in their.items():
            compared[decoder] += len(values)
        for decoder, model, quantity, what, example in disagreements(our, their, is_published, ranges):
            found[decoder, model, quantity, what].append((frame, example))
    register = json.loads((HERE / "register.json").read_text())
    known = {(entry["decoder"], entry["model"], entry["quantity"], entry["what"]) for entry in register if not (without_npm and entry["decoder"] in NPM)}
    for key, examples in sorted(found.items(), key=str):
        if key not in known or "--all" in sys.argv:
            frame, example = examples[0]
            print(f"{'known' if key in known else 'NEW'} {key} {len(examples)} times, such as {json.dumps(frame)}: {example}")
    unneeded = known - set(found)
    for key in sorted(unneeded, key=str):
        print(f"register.json explains {key}, which does not occur")
    print(f"decoders: {len(given)} frames, {sum(compared.values())} values of {len(compared)} decoders compared; {len(found)} kinds of disagreement, {len(set(found) - known)} not explained")
    sys.exit(bool(set(found) - known or unneeded))


if __name__ == "__main__":
    main()
