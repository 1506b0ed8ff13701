"""Mutations of files of a timeline and beside it: Avro containers, JSON documents, properties and texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from hudi_core.codec.avro.container import SYNC_BYTES, assemble, is_container, read_container, schema_bytes
from hudi_core.codec.avro.datum import codec_of
from hudi_core.codec.binary import encode_zigzag
from hudi_core.errors import HudiError
from tests.hostile.change import Changed, NotApplicableError, damage, edit
from tests.hostile.schemas import changed_schema, hostile_schema
from tests.hostile.values import NUMBERS, TEXTS, change_document, odd_list, odd_number, odd_text

ATTEMPTS = 20
"""A value that the record's schema does not bear is drawn again."""


def change_control_file(data: bytes, random: Random, others: Sequence[bytes]) -> Changed:
    """A container or a JSON document with one change; other texts as properties."""
    if is_container(data):
        return change_container(data, random, others)
    if data[:1] in (b"{", b"["):
        return change_json(data, random)
    return change_properties(data, random)


def change_container(data: bytes, random: Random, others: Sequence[bytes]) -> Changed:
    """A value of the record, the schema, or the framing changed."""
    try:
        schema, records = read_container(data, path="seed")
    except HudiError as error:
        raise NotApplicableError from error
    step = random.randrange(10)
    if step <= 5:
        return _changed_record(schema, records, random)
    body = b"".join(codec_of(schema).encode(record) for record in records)
    if step == 6:
        name, text = hostile_schema(random)
        return damage(assemble(text.encode(), len(records), body), f"schema: {name}")
    if step == 7:
        containers = [other for other in others if is_container(other) and other != data]
        foreign = read_container(random.choice(containers), path="seed")[0] if containers else schema
        changed = changed_schema(random.choice((schema, foreign)), random)
        return edit(assemble(schema_bytes(changed), len(records), body), "schema: a field changed")
    return _changed_framing(schema_bytes(schema), len(records), body, random)


def _changed_record(schema: Any, records: list[Any], random: Random) -> Changed:
    codec = codec_of(schema)
    for _ in range(ATTEMPTS):
        document = json_like(records)
        try:
            what = change_document(document, random, typed=True)
            body = b"".join(codec.encode(record) for record in document)
            return edit(assemble(schema_bytes(schema), len(document), body), what)
        except (HudiError, ValueError, TypeError, KeyError, OverflowError, AttributeError):
            continue
    raise NotApplicableError


def json_like(value: Any) -> Any:
    """A copy whose containers may be changed; values of logical types stay."""
    if isinstance(value, dict):
        return {key: json_like(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and not isinstance(value, bytes):
        return [json_like(item) for item in value]
    return value


def _changed_framing(schema: bytes, count: int, body: bytes, random: Random) -> Changed:
    sync = bytes(SYNC_BYTES)
    whole = assemble(schema, count, body, sync=sync)
    head = assemble(schema, 0, b"", sync=sync)
    number = int(odd_number(count, random))
    step = random.randrange(6)
    if step == 0:
        return damage(head + encode_zigzag(number) + encode_zigzag(len(body)) + body + sync, f"count {number}")
    if step == 1:
        size = int(odd_number(len(body), random))
        return damage(head + encode_zigzag(count) + encode_zigzag(size) + body + sync, f"block of {size} bytes")
    if step == 2:
        return damage(whole[:-SYNC_BYTES] + b"\1" * SYNC_BYTES, "another sync marker")
    if step == 3:
        return damage(whole + whole[len(head) :], "the block twice")
    if step == 4:
        return damage(head, "no block")
    codec = random.choice((b"deflate", b"snappy", b"\xff", b"x" * 1000))
    return damage(assemble(schema, count, body, {"avro.codec": codec}), "another codec")


def change_json(data: bytes, random: Random) -> Changed:
    """One to three values of other content, other types, removed or renamed."""
    try:
        document: Any = [json.loads(data)]
    except ValueError as error:
        raise NotApplicableError from error
    step = random.randrange(12)
    if step == 0:
        return damage(b'{"a":' * 100_000, "nested too deep")
    if step == 1:
        return damage(data[:-2] + b',"a":1e999999999,"b":' + b"9" * 100_000 + b"}", "numbers without end")
    found = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        if not isinstance(document[0], dict | list) or not document[0]:
            break
        found.append(change_document(document[0], random, typed=False))
    if not found:
        raise NotApplicableError
    return edit(json.dumps(document[0]).encode("utf-8", "surrogatepass"), "; ".join(found))


def change_properties(data: bytes, random: Random) -> Changed:
    """One line of `name=value` of another value, doubled, removed, endless or no text at all."""
    lines = data.decode("utf-8", "replace").split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip() and not line.startswith("#")]
    if not filled:
        raise NotApplicableError
    at = random.choice(filled)
    name, _, value = lines[at].partition("=")
    step = random.randrange(8)
    if step <= 3:
        values = [lines[number].partition("=")[2] for number in filled]
        number = random.choice(NUMBERS)
        lines[at] = f"{name}={random.choice((odd_text(value, random, values), str(number), random.choice(TEXTS)))}"
    elif step == 4:
        lines = odd_list(lines, random)
    elif step == 5:
        lines[at] = f"{name}=\\u12zz{value}"
    elif step == 6:
        lines[at] = f"{name}={'x' * 2_000_000}"
    else:
        text = "\n".join(lines).encode()
        return damage(b"\xff\xfe\x00" + text, "bytes that are no text")
    return edit("\n".join(lines).encode("utf-8", "surrogatepass"), f"{name[:60]}: step {step}")
