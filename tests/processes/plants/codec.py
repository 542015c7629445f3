"""Plants a person's handles in random texts and encodings, and reads them back, with Python's own codecs.

An encoder and decoder apart from the program under test: what it says of a cell is not that program's word.
Reads one JSON request a line and answers with one JSON line:

  {"op": "make", "seed": N, "count": K, "person": {...}, "text_only": B}   -> {"plants": [...]}
  {"op": "look", "cells": [{"id": I, "hex": H}]}                           -> {"cells": [{"id", "decodes", "holds", "rest"}]}
"""

import base64
import gzip
import html
import io
import json
import pickle
import random
import struct
import sys
import unicodedata
import urllib.parse
import zipfile
import zlib

IGNORED = dict.fromkeys([0x00AD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF])
APART = "rest-of-the-value stays"  # is next to every plant, and must survive a redaction


def folded(text):
    text = unicodedata.normalize("NFKC", text.translate(IGNORED)).casefold()
    text = text.replace("’", "'").replace("‘", "'")
    return " ".join(unicodedata.normalize("NFC", text).split())


# --- small encoders for what Python has no module for -------------------------------------------------------------


def msgpack(value):
    if isinstance(value, str):
        raw = value.encode()
        return (bytes([0xA0 | len(raw)]) if len(raw) < 32 else b"\xda" + struct.pack(">H", len(raw))) + raw
    if isinstance(value, bytes):
        return b"\xc5" + struct.pack(">H", len(value)) + value
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return struct.pack("B", value) if 0 <= value < 128 else b"\xd3" + struct.pack(">q", value)
    if isinstance(value, list):
        return b"\xdc" + struct.pack(">H", len(value)) + b"".join(map(msgpack, value))
    if isinstance(value, tuple):  # an extension: its number and what is packed again inside
        inner = msgpack(value[1])
        return b"\xc8" + struct.pack(">Hb", len(inner), value[0]) + inner
    return b"\xde" + struct.pack(">H", len(value)) + b"".join(msgpack(k) + msgpack(v) for k, v in value.items())


def unmsgpack(data, at=0):
    kind = data[at]
    at += 1
    if kind < 0x80:
        return kind, at
    if 0xA0 <= kind < 0xC0:
        n = kind & 31
        return data[at : at + n].decode(), at + n
    if kind in (0xC2, 0xC3):
        return kind == 0xC3, at
    if kind in (0xD9, 0xDA, 0xDB, 0xC4, 0xC5, 0xC6):
        size = {0xD9: 1, 0xDA: 2, 0xDB: 4, 0xC4: 1, 0xC5: 2, 0xC6: 4}[kind]
        n = int.from_bytes(data[at : at + size], "big")
        raw = data[at + size : at + size + n]
        assert len(raw) == n
        return (raw.decode() if kind >= 0xD9 else raw), at + size + n
    if kind == 0xD3:
        return struct.unpack(">q", data[at : at + 8])[0], at + 8
    if kind in (0xC7, 0xC8, 0xC9):
        size = {0xC7: 1, 0xC8: 2, 0xC9: 4}[kind]
        n = int.from_bytes(data[at : at + size], "big")
        inner, end = unmsgpack(data[at + size + 1 : at + size + 1 + n])
        assert end == n
        return inner, at + size + 1 + n
    fixext = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
    if kind in fixext:
        n = fixext[kind]
        return unmsgpack(data[at + 1 : at + 1 + n])[0], at + 1 + n
    many = kind & 15
    if kind in (0xDC, 0xDD, 0xDE, 0xDF):
        size = 2 if kind in (0xDC, 0xDE) else 4
        many, at = int.from_bytes(data[at : at + size], "big"), at + size
    if kind in (0xDC, 0xDD) or 0x90 <= kind < 0xA0:
        out = []
        for _ in range(many):
            item, at = unmsgpack(data, at)
            out.append(item)
        return out, at
    assert kind in (0xDE, 0xDF) or 0x80 <= kind < 0x90
    out = {}
    for _ in range(many):
        key, at = unmsgpack(data, at)
        out[key], at = unmsgpack(data, at)
    return out, at


def cbor_head(major, n):
    if n < 24:
        return bytes([major << 5 | n])
    return bytes([major << 5 | 25]) + struct.pack(">H", n)


def cbor(value):
    if isinstance(value, str):
        raw = value.encode()
        return cbor_head(3, len(raw)) + raw
    if isinstance(value, list):
        return cbor_head(4, len(value)) + b"".join(map(cbor, value))
    return cbor_head(5, len(value)) + b"".join(cbor(k) + cbor(v) for k, v in value.items())


def protobuf(text):
    raw = text.encode()
    inner = b"\x0a" + varint(len(raw)) + raw
    rest = APART.encode()
    return b"\x08\x96\x01" + b"\x12" + varint(len(inner)) + inner + b"\x1a" + varint(len(rest)) + rest


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def zstd_raw(data):
    """A frame of one block that is stored as it is."""
    return b"\x28\xb5\x2f\xfd\x60" + struct.pack("<H", max(len(data) - 256, 0)) + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def zip_of(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rest.txt", APART)
        archive.writestr("note.txt", data)
    return out.getvalue()


# --- layers: (name, text -> bytes or text, rewritable in place) ---------------------------------------------------

TEXT_LAYERS = {
    "plain": lambda t: t,
    "json": lambda t: json.dumps({"note": t, "rest": APART, "n": 1.10}, ensure_ascii=False),
    "json-escaped": lambda t: json.dumps({"rest": APART, "deep": [{"note": t}]}),
    "json-all-escaped": lambda t: '{"note": "%s", "rest": "%s"}'
    % ("".join("\\u%04x" % u for u in struct.unpack("<%dH" % (len(t.encode("utf-16-le")) // 2), t.encode("utf-16-le"))), APART),
    "json-key": lambda t: json.dumps({t: 1, "rest": APART}, ensure_ascii=False),
    "json-in-json": lambda t: json.dumps({"inner": json.dumps({"note": t}), "rest": APART}),
    "entities": lambda t: "".join("&#%d;" % ord(c) for c in t) + " " + APART,
    "entities-hex": lambda t: "".join("&#x%x;" % ord(c) for c in t) + " " + APART,
    "html": lambda t: "<p>" + html.escape(t) + "</p> " + APART,
    "percent": lambda t: "https://host.example/q?who=" + urllib.parse.quote(t, safe="") + "&rest=" + urllib.parse.quote(APART),
    "base64": lambda t: base64.b64encode((t + " " + APART).encode()).decode(),
    "base64-url": lambda t: base64.urlsafe_b64encode((APART + " " + t).encode()).decode().rstrip("="),
    "base64-twice": lambda t: base64.b64encode(base64.b64encode((t + " " + APART).encode())).decode(),
    "base64-zlib": lambda t: base64.b64encode(zlib.compress((t + " " + APART).encode())).decode(),
    "hex": lambda t: (t + " " + APART).encode().hex(),
}
BYTE_LAYERS = {
    "zlib": lambda t: zlib.compress((t + " " + APART).encode()),
    "zlib-json": lambda t: zlib.compress(TEXT_LAYERS["json"](t).encode()),
    "zlib-twice": lambda t: zlib.compress(zlib.compress((t + " " + APART).encode())),
    "zlib-two-streams": lambda t: zlib.compress(APART.encode()) + zlib.compress(t.encode()),
    "gzip": lambda t: gzip.compress((t + " " + APART).encode()),
    "gzip-two-members": lambda t: gzip.compress(APART.encode()) + gzip.compress(t.encode()),
    "zstd": lambda t: zstd_raw((t + " " + APART).encode().ljust(300)),
    "msgpack": lambda t: msgpack({"note": t, "rest": APART, "n": [1, 70000, True]}),
    "msgpack-ext": lambda t: msgpack({"messages": [(5, ["m", "Human", {"content": t}])], "rest": APART}),
    "msgpack-key": lambda t: msgpack({t: "value", "rest": APART}),
    "utf-16": lambda t: (t + " " + APART).encode("utf-16-le"),
    "utf-16-be": lambda t: (t + " " + APART).encode("utf-16-be"),
    "pickle-0": lambda t: pickle.dumps({"note": t, "rest": APART}, 0),
    "pickle-2": lambda t: pickle.dumps({"note": t, "rest": APART}, 2),
    "pickle-5": lambda t: pickle.dumps({"note": t, "rest": APART}, 5),
    "cbor": lambda t: cbor({"note": t, "rest": APART}),
    "protobuf": protobuf,
    "zip": lambda t: zip_of(t.encode()),
}
SEARCHED_ONLY = {"pickle-0", "cbor", "protobuf", "zip"}

CERTAIN = ["{}", "to {}, please", "“{}”", "«{}»", "\u00a0{}\u00a0", "\ufeff{} wrote", "🙂{}🙂", "请联系{}谢谢", "({})", "{}:", "a line\n{}\nanother"]
POSSIBLE = ["user_{}", "{}_backup.json", "{}2", "mem_{}_7"]


def spellings(person, rng):
    """Ways to write each handle that name the person for certain."""
    out = [person["mail"], person["mail"].upper()]
    if person["rare_id"]:
        out += [person["id"]]
    first, last = person["name"].split(" ", 1)
    out += [
        person["name"],
        person["name"].upper(),
        f"{first}  {last}",
        f"{first}\n{last}",
        f"{first}\u00a0{last}",
        f"{last}, {first}",
        unicodedata.normalize("NFD", person["name"]),
        person["name"].replace("'", "’"),
        first[:2] + "\u00ad" + first[2:] + " " + last,
        first[:1] + "\u200b" + first[1:] + " " + last,
        "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in person["name"]),
    ]
    return rng.choice(out)


class Garden:
    """What was planted, by id."""

    def __init__(self):
        self.plants = {}
        self.person = None

    def make(self, request):
        rng = random.Random(request["seed"])
        self.person = request["person"]
        return {"plants": [self.plant(rng, n, request["text_only"], request["certain_only"]) for n in range(request["count"])]}

    def plant(self, rng, number, text_only, certain_only):
        kind = "certain" if certain_only else rng.choices(["certain", "possible", "never"], [6, 2, 3])[0]
        if kind == "never":
            text = rng.choice(self.person["strangers"])
            name = rng.choice(["plain", "json", "json-escaped", "base64", "json-in-json"])
        else:
            spelled = spellings(self.person, rng) if kind == "certain" else self.person["mail"]
            text = rng.choice(CERTAIN if kind == "certain" else POSSIBLE).format(spelled)
            layers = list(TEXT_LAYERS) + ([] if text_only else list(BYTE_LAYERS))
            if certain_only:
                layers = [layer for layer in layers if layer not in SEARCHED_ONLY and layer != "percent"]
            name = rng.choice(layers)
        packed = (TEXT_LAYERS.get(name) or BYTE_LAYERS[name])(text)
        is_text = isinstance(packed, str)
        raw = packed.encode() if is_text else packed
        self.plants[number] = (kind, name, text, raw)
        return {"id": number, "class": kind, "layer": name, "text": text, "hex": raw.hex(), "is_text": is_text,
                "rewritable": name not in SEARCHED_ONLY}

    def look(self, request):
        return {"cells": [self.cell(c["id"], bytes.fromhex(c["hex"])) for c in request["cells"]]}

    def cell(self, number, raw):
        kind, name, text, before = self.plants[number]
        try:
            leaves = [folded(leaf) for leaf in decoded(name, raw)]
        except Exception as problem:  # whatever it is, the cell cannot be read any more
            return {"id": number, "decodes": False, "holds": True, "rest": False, "same": raw == before, "why": repr(problem)}
        handles = {folded(h) for h in self.handles()}
        holds = any(handle in leaf for leaf in leaves for handle in handles)
        rest = name == "plain" or any(folded(APART) in leaf for leaf in leaves)
        return {"id": number, "decodes": True, "holds": holds, "rest": rest, "same": raw == before, "why": ""}

    def handles(self):
        first, last = self.person["name"].split(" ", 1)
        rare = [self.person["id"]] if self.person["rare_id"] else []
        return rare + [self.person["mail"], self.person["name"], f"{last}, {first}"]


def strings(value):
    """Every text in a decoded value, keys among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from strings(key)
            yield from strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from strings(item)


def streams(raw, wbits):
    out = b""
    while raw:
        reader = zlib.decompressobj(wbits)
        out += reader.decompress(raw) + reader.flush() + b" "
        assert reader.eof, "cut short"
        raw = reader.unused_data
    return out


def unbase64(text):
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if set(text) & set("-_") else None, validate=True)


def decoded(name, raw):
    """The texts behind a layer."""
    if name in BYTE_LAYERS and not name.startswith("json"):
        if name == "zlib-json":
            return list(strings(json.loads(streams(raw, 15))))
        if name == "zlib-twice":
            return [zlib.decompress(zlib.decompress(raw)).decode()]
        if name.startswith("zlib"):
            return [streams(raw, 15).decode()]
        if name.startswith("gzip"):
            return [streams(raw, 31).decode()]
        if name == "zstd":
            return [unzstd(raw)]
        if name.startswith("msgpack"):
            value, end = unmsgpack(raw)
            assert end == len(raw), "bytes left over"
            return list(strings(value))
        if name.startswith("utf-16"):
            return [raw.decode("utf-16-be" if name.endswith("be") else "utf-16-le")]
        if name.startswith("pickle"):
            return list(strings(pickle.loads(raw)))
        if name == "zip":
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                return [archive.read(n).decode() for n in archive.namelist()]
        return [raw.decode("utf-8", "replace")]
    text = raw.decode()
    if name == "json-in-json":
        outer = json.loads(text)
        return [*strings(outer), *strings(json.loads(outer["inner"]))]
    if name.startswith("json"):
        return list(strings(json.loads(text)))
    if name.startswith("entities") or name == "html":
        return [html.unescape(text)]
    if name == "percent":
        return [urllib.parse.unquote_plus(text)]
    if name == "base64-twice":
        return [unbase64(unbase64(text).decode()).decode()]
    if name == "base64-zlib":
        return [zlib.decompress(unbase64(text)).decode()]
    if name.startswith("base64"):
        return [unbase64(text).decode()]
    if name == "hex":
        return [bytes.fromhex(text).decode()]
    return [text]


def unzstd(raw):
    """The text of a frame whose blocks are stored as they are; others are left to the standard library where it has it."""
    try:
        from compression import zstd  # Python 3.14
        return zstd.decompress(raw).decode()
    except ImportError:
        pass
    assert raw[:4] == b"\x28\xb5\x2f\xfd"
    flags, at = raw[4], 5
    at += 0 if flags & 0x20 else 1
    at += {0: 1 if flags & 0x20 else 0, 1: 2, 2: 4, 3: 8}[flags >> 6]
    out = b""
    while True:
        head = int.from_bytes(raw[at : at + 3], "little")
        size, kind, last = head >> 3, head >> 1 & 3, head & 1
        at += 3
        if kind == 0:
            out, at = out + raw[at : at + size], at + size
        elif kind == 1:
            out, at = out + raw[at : at + 1] * size, at + 1
        else:
            return APART  # packed: only a decoder of the whole format could tell
        if last:
            return out.decode()


def main():
    garden = Garden()
    for line in sys.stdin:
        request = json.loads(line)
        answer = garden.make(request) if request["op"] == "make" else garden.look(request)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
