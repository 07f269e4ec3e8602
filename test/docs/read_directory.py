"""Prints every record of a data directory as a line of JSON. Written after docs/format.md, with nothing else at hand.

    python3 read_directory.py <directory>

Bytes are printed in hexadecimal. "transaction" is null, "committed", "aborted" or "open".
"""
import json
import struct
import sys
import zlib
from pathlib import Path

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def crc32c(data, start=0):
    register = start ^ 0xFFFFFFFF
    for byte in data:
        register = register >> 8 ^ TABLE[(register ^ byte) & 255]
    return register ^ 0xFFFFFFFF


def read_checkpoint(directory):
    raw = (directory / "checkpoint").read_bytes()
    header, content = raw.split(b"\n", 1)
    odradek, checkpoint, version, length, crc = header.split(b" ")
    assert (odradek, checkpoint, version) == (b"odradek", b"checkpoint", b"1"), "a format that this program does not know"
    assert int(length) == len(content) and int(crc, 16) == crc32c(header[:-8] + content), "a broken checkpoint"
    return json.loads(content)


def read_groups(path, seed):
    """The groups from the beginning of a journal file on: sequence, body."""
    data = path.read_bytes() if path.exists() else b""
    at = 0
    while data[at:at + 4] == b"ODJG" and len(data) - at >= 32:
        length, sequence, _synced, body_crc, header_crc = struct.unpack_from(">IQQII", data, at + 4)
        body = data[at + 32:at + 32 + length]
        if crc32c(data[at:at + 28], seed) != header_crc or len(body) < length or crc32c(body, seed) != body_crc:
            return
        yield sequence, body
        at += 32 + length


def read_journal(directory, checkpoint):
    """The bodies of the groups that count, in order."""
    found = {}
    for name in ("a", "b"):
        found.update(read_groups(directory / "journal" / name, checkpoint["seed"]))
    sequence = checkpoint["sequence"] + 1
    while sequence in found:
        yield found[sequence]
        sequence += 1


def read_entries(body):
    at = 0
    while at < len(body):
        kind, length = struct.unpack_from(">BI", body, at)
        yield kind, body[at + 5:at + 5 + length]
        at += 5 + length


def split_log(payload):
    """The log that an entry names, and the rest of it."""
    end = 1 + payload[0]
    return (payload[1:end].decode(), struct.unpack_from(">I", payload, end)[0]), payload[end + 4:]


def directory_of(topic_id, partition):
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
    name = "".join(chr(byte) if byte in plain else "%%%02X" % byte for byte in topic_id.encode())
    return f"{name}-{partition}"


def read_segments(directory, log):
    for segment in log["segments"]:
        generation = f"-{segment['generation']}" if "generation" in segment else ""
        path = directory / "logs" / directory_of(log["topicId"], log["partition"]) / f"{segment['base']:020}{generation}.log"
        if path.exists() or segment["next"] > log["start"]:
            batches = path.read_bytes()[:segment["sizeBytes"]]
            assert crc32c(batches) == segment["crc"], f"{path} is damaged"
            yield from split_batches(batches)


def split_batches(data):
    at = 0
    while at < len(data):
        end = at + 12 + struct.unpack_from(">i", data, at + 8)[0]
        yield data[at:end]
        at = end


def read_logs(directory):
    """Topic names by id, and logs with `start` and `batches`, as they are when the journal is through."""
    checkpoint = read_checkpoint(directory)
    meta = dict(checkpoint["meta"])
    logs = {}
    for log in checkpoint["logs"]:
        logs[log["topicId"], log["partition"]] = {
            "start": log["start"], "end": log["end"], "stored": log, "batches": []}
    for body in read_journal(directory, checkpoint):
        for kind, payload in read_entries(body):
            if kind == 2:
                for key, value in json.loads(payload):
                    meta.pop(key, None) if value is None else meta.update({key: value})
                continue
            name, rest = split_log(payload)
            if kind == 4:
                logs.pop(name, None)
                continue
            log = logs.setdefault(name, {"start": 0, "end": 0, "stored": None, "batches": []})
            if kind == 3:
                log["start"] = max(log["start"], struct.unpack(">Q", rest)[0])
            elif struct.unpack_from(">q", rest)[0] >= log["end"]:
                log["batches"].append(rest)
                log["end"] = struct.unpack_from(">q", rest)[0] + struct.unpack_from(">i", rest, 23)[0] + 1
    for log in logs.values():
        if log["stored"] is not None:
            log["stored"]["start"] = log["start"]
            log["batches"] = [*read_segments(directory, log["stored"]), *log["batches"]]
    return {key[len("topic/"):]: value["name"] for key, value in meta.items() if key.startswith("topic/")}, logs


class Records:
    """The records of one batch."""

    def __init__(self, batch):
        (self.base, _length, _epoch, magic, crc, self.attributes, _last, self.base_time, self.max_time, self.producer,
         _producer_epoch, _sequence, self.count) = struct.unpack_from(">qiibIhiqqqhii", batch)
        assert magic == 2 and crc32c(batch[21:]) == crc, f"the batch at offset {self.base} is damaged"
        codec = self.attributes & 7
        assert codec < 2, f"the batch at offset {self.base} has codec {codec}, for which Python has no module"
        self.data, self.at = (zlib.decompress(batch[61:], 31) if codec else batch[61:]), 0

    def varint(self):
        number = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number >> 1 ^ -(number & 1)

    def field(self):
        length = self.varint()
        if length < 0:
            return None
        self.at += length
        return self.data[self.at - length:self.at]

    def __iter__(self):
        for _ in range(self.count):
            self.varint()
            self.at += 1
            time, offset, key, value = self.base_time + self.varint(), self.base + self.varint(), self.field(), self.field()
            headers = [(self.field(), self.field()) for _ in range(self.varint())]
            yield offset, self.max_time if self.attributes & 8 else time, key, value, headers


def hexadecimal(data):
    return None if data is None else data.hex()


def print_log(topic, partition, log):
    # From behind: the first marker after a batch of a transaction decides.
    fates, lines = {}, []
    for batch in reversed(log["batches"]):
        records = Records(batch)
        if records.attributes & 32:
            for _offset, _time, key, _value, _headers in records:
                fates[records.producer] = {0: "aborted", 1: "committed"}.get(struct.unpack(">hh", key)[1])
            continue
        fate = fates.get(records.producer, "open") if records.attributes & 16 else None
        lines.append([
            json.dumps({"topic": topic, "partition": partition, "offset": offset, "timestamp": time,
                        "key": hexadecimal(key), "value": hexadecimal(value),
                        "headers": [[name.decode(), hexadecimal(text)] for name, text in headers], "transaction": fate})
            for offset, time, key, value, headers in records if offset >= log["start"]])
    for batch_lines in reversed(lines):
        for line in batch_lines:
            print(line)


def main(path):
    topics, logs = read_logs(Path(path))
    for (topic_id, partition), log in sorted(logs.items()):
        print_log(topics.get(topic_id), partition, log)


main(sys.argv[1])
