"""Hostile files, drawn from a seed: bytes, sizes, names, headers and fields that `save` does not write."""

import copy
import io
import json
import random
import re
import struct
import sys
import tracemalloc
import warnings
import zipfile
from collections import Counter, OrderedDict

import numpy as np

import symgrad
from symgrad import nn
from symgrad.utils.serialization import LoadError

STRUCTURE = "structure.json"
BASE = symgrad.arange(12.0).reshape(3, 4)
OBJECTS = [
    {"w": symgrad.tensor([1.0, 2.0], requires_grad=True, symbol="x"), "b": symgrad.ones(2, dtype=symgrad.bfloat16), "n": symgrad.tensor(3)},
    [BASE, BASE[1:, 2], BASE.t(), (1, 2.5, float("inf"), 1j, None, True, "\ud800", 2**80), symgrad.Size([1, 2]), symgrad.float32, b"abc"],
    OrderedDict([("weight", nn.Parameter(symgrad.ones(2, 2))), ("count", nn.Buffer(symgrad.tensor([5]))), (3, {1, 2}), ("set", frozenset({"a"}))]),
    {"array": np.arange(6, dtype=np.int16)[::-2], "number": np.float32(1.5), "none": symgrad.zeros(0, 3), "flag": symgrad.tensor([True]),
     "same": [symgrad.zeros(1).expand(5)] * 2, "device": symgrad.device("cpu"), "deep": [[[[{}]]]]},
]
VALUES = [None, True, False, -1, 0, 1, 2, 3, 2**31, 2**63, -2**63 - 1, 10**400, 1.5, -0.0, 1e308, "", "x", "x y", "__import__('os')", "\ud800",
          "float64", "float128", "object", "bool", "cpu", "cuda:0", "Module", "Parameter", "nan", "0x1g", [], [1], [-1], [True], [2.0], ["2"],
          [2**62, 2**62], [0] * 65, [10**9], {}, {"dict": [[[], 1]]}, {"dict": [[1, 1], [True, 2]]},
          {"dict": [[1]]}, {"dict": {"a": 1}}, {"set": [[1]]},
          {"set": [{"list": 1}]}, {"tensor": 0}, {"tensor": -1}, {"tensor": True}, {"tensor": 9}, {"array": 0}, {"number": 0}, {"float": "1e999"},
          {"complex": ["1", "x"]}, {"complex": "12"}, {"dtype": []}, {"dtype": "int65"}, {"device": "nowhere"}, {"bytes": "0"}, {"bytes": 1},
          {"size": [1.5]}, {"size": [[1]]}, {"ordered": [], "metadata": {"set": [[]]}}, {"dict": [], "metadata": 1}, {"eval": "1"}, {"tuple": 3},
          {"frozenset": [1, True]}, {"int": "-0x1"}, {"int": 5}]
DEEP = 50_000  # levels, written as text: the encoder of JSON recurses


def saved(obj):
    file = io.BytesIO()
    symgrad.save(obj, file)
    return file.getvalue()


FILES = [saved(obj) for obj in OBJECTS]


def members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts, method=zipfile.ZIP_STORED, more=()):
    """A zip of members, with the right sizes and checksums."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive, warnings.catch_warnings(action="ignore"):
        for name, content in (*parts.items(), *more):
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return file.getvalue()


def places(value, at=()):
    """The places of a JSON value, with what stands there."""
    yield at, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*at, key))


def bytes_changed(draw, content):
    content = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 2, 8])):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    return bytes(content)


def spans_changed(draw, content):
    """A truncated, lengthened, shortened or repeated file."""
    i, j = sorted(draw.randrange(len(content) + 1) for _ in range(2))
    return draw.choice([content[:i], content[i:], content[:i] + content[j:], content[:j] + content[i:], content + content, bytes(i) + content,
                        content[:i] + draw.randbytes(5) + content[i:], content[:i] + bytes(j - i) + content[j:], content + draw.randbytes(9)])


def fields_changed(draw, content):
    """Other values in the places of the structure, missing, unknown and repeated fields, and text that is no JSON."""
    parts = members(content)
    document = json.loads(parts[STRUCTURE])
    for _ in range(draw.choice([1, 1, 2, 3])):
        at, value = draw.choice([found for found in places(document) if found[0]])
        parent = document
        for key in at[:-1]:
            parent = parent[key]
        how = draw.randrange(6)
        if how == 0:
            del parent[at[-1]]
        elif how == 1 and isinstance(value, dict):
            value[draw.choice(["strides", "offset", "symbol", "requires_grad", "class", "metadata", "x"])] = copy.deepcopy(draw.choice(VALUES))
        elif how == 2:
            parent[at[-1]] = copy.deepcopy(draw.choice([found for _, found in places(document)]))
        else:
            parent[at[-1]] = copy.deepcopy(draw.choice(VALUES))
    text = json.dumps(document)
    how = draw.randrange(12)
    if how == 0:
        text = re.sub(r"\d+", lambda found: draw.choice(["NaN", "Infinity", "-Infinity", "9" * 5000, "1e999", found[0]]), text, count=3)
    elif how == 1:
        text = text.replace('{"', '{"tensor": 0, "', 2)
    elif how == 2:
        bracket = draw.choice(["[", '{"a":', '{"tuple":['])
        text = text.replace("[", "[" + bracket * DEEP + "1" + {"[": "]", "{": "}"}[bracket[0]] * DEEP + ",", 1)
    elif how == 3:
        text = draw.choice([text[:-1], text + "1", "\ufeff" + text, text.encode("utf-16"), text.encode()[:-3] + b"\xff", "[" * DEEP, b"",
                            "[]", "1", "null"])
    parts[STRUCTURE] = text
    return packed(parts)


def headers_changed(draw, content):
    """Headers of arrays that lie about sizes, dtypes, order and versions."""
    parts = members(content)
    name = draw.choice([name for name in parts if name != STRUCTURE])
    array = parts[name]
    shape = draw.choice(["(9999999999,)", "(-1,)", "()", "(0, 2)", "(2.0,)", "(4611686018427387904, 4)", "(1,) * 9", "[2]", "(True,)",
                         "(0, 9999999999999999999)", "(" + "1, " * 70 + ")", "(" * 5000, "((((1,),),),)"])
    dtype = draw.choice(["'>f8'", "'<f4'", "'|O'", "'<U9'", "'<M8[s]'", "'|V8'", "'|S8'", "[('a', '<f8')]", "'<f16'", "'=f8'", "'<u2'",
                         "__import__('os')"])
    old = array[10:].partition(b"\n")[0]
    header = draw.choice([re.sub(rb"\([^)]*\)", shape.encode(), old), re.sub(rb"'[<>|=]\w+'", dtype.encode(), old), old.replace(b"False", b"True"),
                          old.replace(b"'shape'", b"'form'"), old + b" " * 70_000, b"", draw.randbytes(20), b"\xff" * 64])
    version = draw.choice([b"\x01\x00"] * 5 + [b"\x02\x00", b"\x09\x00"])
    parts[name] = b"\x93NUMPY" + version + struct.pack("<H", (len(header) + 1) % 65536) + header + b"\n" + array[10:].partition(b"\n")[2]
    if draw.random() < 0.2:
        parts[name] = array[:draw.randrange(len(array))]
    return packed(parts)


BOMB = bytes(30_000_000)


def archives_changed(draw, content):
    """Compressed, repeated, missing, unknown, encrypted and overlapping members, and sizes that are not theirs."""
    parts, how = members(content), draw.randrange(9)
    names = list(parts)
    name = draw.choice(names)
    if how == 0:
        return packed(parts, draw.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]))
    if how == 1:
        return packed({**parts, name: BOMB}, zipfile.ZIP_DEFLATED) if draw.random() < 0.1 else packed({**parts, name: bytes(9)}, zipfile.ZIP_DEFLATED)
    if how == 2:
        other = draw.choice(["../x.npy", "/etc/passwd", "a/0.npy", "a\\0.npy", "0.npy\0", "00.npy", "-1.npy", "9.npy", "99999999999.npy", "0.NPY", "",
                             "\u0660.npy", "x" * 60_000, "archive/data.pkl", ".", "C:\\x"])
        return packed({**parts, other: parts[name]}) if draw.random() < 0.5 else packed({other if n == name else n: c for n, c in parts.items()})
    if how == 3:
        del parts[name]
        return packed(parts)
    file = bytearray(content)
    entries = [found.start() for found in re.finditer(b"PK\x01\x02", content)]
    entry = draw.choice(entries)
    if how == 4:  # the same name twice: the name in the directory, or in both places
        wanted = draw.choice(names).encode()
        return bytes(file).replace(name.encode(), wanted) if len(wanted) == len(name) else packed(parts, more=[(name, parts[name])])
    if how == 5:
        file[entry + 8] |= draw.choice([1, 8, 0x40, 0x20])
        return bytes(file)
    if how == 6:  # sizes and offsets of 64 bits, the last 24 bytes of an entry
        end = entry + 46 + struct.unpack_from("<H", file, entry + 28)[0] + 28
        struct.pack_into("<Q", file, end - draw.choice([24, 16, 8]), draw.choice([0, 1, 2**31, 2**40, 2**63, 2**64 - 1, draw.randrange(len(file))]))
        return bytes(file)
    if how == 7:  # overlapping members: two entries of one place
        ends = [start + 46 + struct.unpack_from("<H", file, start + 28)[0] + 28 for start in entries]
        file[ends[-1] - 8:ends[-1]] = file[ends[0] - 8:ends[0]]
        return bytes(file)
    struct.pack_into("<L", file, entry + draw.choice([10, 16, 20, 24, 42]), draw.choice([0, 1, 99, 2**31, 2**32 - 2]))
    return bytes(file)


CHANGES = [bytes_changed, spans_changed, fields_changed, headers_changed, archives_changed]
CONSISTENT = {fields_changed, headers_changed}  # their checksums are right, so that they may hold another object


def drawn(seed):
    """The kind of change of a seed, the object that was saved, and the changed file."""
    draw = random.Random(seed)
    change, i = CHANGES[seed % len(CHANGES)], draw.randrange(len(FILES))
    return change, i, change(draw, FILES[i])


def alike(a, b):
    """Whether two files hold the same bytes in each member but for their order, since sets of tensors have the order of their addresses."""
    archives = [zipfile.ZipFile(io.BytesIO(content)) for content in (a, b)]
    first, second = ([sorted(archive.read(name)) for name in sorted(archive.namelist())] for archive in archives)
    return sorted(first) == sorted(second)


def attack(seeds):
    """Load hostile files: each is refused by LoadError, or holds the object that was saved, or another that can be saved and loaded again.

    Returns the numbers of files by kind and outcome. No file takes more memory than a multiple of its size.
    """
    counts, most = Counter(), 0
    tracemalloc.start()
    try:
        for seed in seeds:
            change, i, content = drawn(seed)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                found = symgrad.load(io.BytesIO(content))
            except LoadError as error:
                assert str(error).startswith("load: "), (seed, error)
                outcome = "refused"
            else:
                outcome = "loaded"
            used = tracemalloc.get_traced_memory()[1] - before
            most = max(most, used / (len(content) + 20_000))
            assert used < 50 * len(content) + 1_000_000, (seed, used, len(content))
            if outcome == "loaded":
                again = saved(found)
                assert again == FILES[i] or change in CONSISTENT and alike(saved(symgrad.load(io.BytesIO(again))), again), seed
            counts[f"{change.__name__} {outcome}"] += 1
    finally:
        tracemalloc.stop()
    counts["bytes of memory for one of a file, at most"] = round(most)
    return counts


def watched(first, last):
    """The attack, with all that Python does meanwhile to files, processes and code: none of it is allowed."""
    attack(range(first, first + 20))  # with all imports
    found, watching = Counter(), True
    allowed = ("tracemalloc", "builtins.id", "object.__getattr__", "gc.", "sys._getframe", "array.")

    def hook(event, args):
        if watching and not event.startswith(allowed):
            found[event] += 1

    sys.addaudithook(hook)
    counts = attack(range(first, last))
    watching = False
    assert not found, found
    return counts


if __name__ == "__main__":
    print(json.dumps(watched(int(sys.argv[1]), int(sys.argv[2]))))
