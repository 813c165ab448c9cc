"""Compares what the library reads with what decoders of PyPI read, frame by frame: the frames of the models' tests, and each with bytes changed or cut off. A
disagreement that register.json does not explain fails, and so does an explanation that nothing needs any more."""

import collections
import json
import os
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIBRARY = ROOT / "protocol/adverts/library"
MUTATIONS = 40
# Some decoders round to a tenth.
TOLERANCE = 0.051


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
    chance = random.Random(1)
    for path in sorted(LIBRARY.glob("*/*.json")):
        for test in json.loads(path.read_text())["tests"]:
            frame = {key: test[key] for key in ("address", "name", "manufacturerData", "serviceData", "serviceUuids") if key in test}
            if "secrets" in test or not (frame.get("manufacturerData") or frame.get("serviceData")):
                continue
            yield frame, True
            for _ in range(MUTATIONS):
                yield mutated(frame, chance), False


def read(command, lines):
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def same(ours, theirs, quantity):
    """Whether two lists of values are equal, in whichever order."""
    step = 1 if quantity == "pressure" else TOLERANCE
    return len(ours) == len(theirs) and all(abs(a - b) <= max(step, abs(a) * 1e-4) for a, b in zip(sorted(ours), sorted(theirs)))


def disagreements(ours, theirs, is_published, ranges):
    """Of one frame: (decoder, model, quantity, what, example). Of a frame that nobody sent, values are compared and not who refuses it: that depends on how many of its
    constant bytes a decoder looks at. A value outside the range of its quantity is none."""
    model = ours["model"] if ours else None
    values = collections.defaultdict(list)
    for key, value in (ours["values"] if ours else {}).items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            values[key.split("[")[0]].append(value)
    for decoder, found in theirs.items():
        for quantity, read_by_them in found.items():
            least, most = ranges[quantity]
            sane = [value for value in read_by_them if least <= value <= most]
            if not sane:
                continue
            if not values[quantity]:
                if is_published:
                    yield decoder, model, quantity, "ABSENT", read_by_them
            elif not same(values[quantity], sane, quantity):
                yield decoder, model, quantity, "OTHER", [values[quantity], read_by_them]


def main():
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "debug/examples/read"
    given = list(frames())
    lines = "".join(json.dumps(frame) + "\n" for frame, _ in given)
    ours = read([program], lines)
    theirs = read([sys.executable, HERE / "theirs.py"], lines)
    [ranges] = read([program, "quantities"], "")
    found = collections.defaultdict(list)
    compared = collections.Counter()
    for (frame, is_published), our, their in zip(given, ours, theirs, strict=True):
        for decoder, values in their.items():
            compared[decoder] += len(values)
        for decoder, model, quantity, what, example in disagreements(our, their, is_published, ranges):
            found[decoder, model, quantity, what].append((frame, example))
    register = json.loads((HERE / "register.json").read_text())
    known = {(entry["decoder"], entry["model"], entry["quantity"], entry["what"]) for entry in register}
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
