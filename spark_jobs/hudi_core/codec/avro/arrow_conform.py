"""Converts Arrow data of an older schema to a reader's schema, by the rules of Avro schema resolution and two of Hudi's
reader.

Names match in any case. Integers are narrowed when every value fits: a compaction that was planned before a column was
widened writes the wide type, and a restore to an instant between the two goes back to the narrow type.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.columns import is_list, is_text, unsliced, with_children
from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.model.names import places


def conform_batch(batch: pa.RecordBatch, schema: pa.Schema, *, path: str) -> pa.RecordBatch:
    """Returns the batch with exactly the columns of `schema`, in its order; an absent nullable column is null. Types
    are widened, within nested types too: int32→int64→float→double, numbers, dates and decimals to text as Java writes
    it, numbers and text to decimals, text to dates, string↔binary, decimals to more digits, timestamps to a finer unit,
    fixed to binary. Integers are narrowed as well. Raises FormatError naming `path` and the column when the data cannot
    take the type or a non-nullable column is absent; CorruptFileError when a value does not fit.
    """
    if batch.schema.equals(schema):
        return batch
    arrays = [
        conform_array(batch.column(at), field, path=path)
        if at >= 0
        else _absent(field, batch.num_rows, field.name, path)
        for field, at in zip(schema, places(batch.schema.names, schema.names, path=path), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema) if arrays else batch.select([])


def conform_array(array: pa.Array, field: pa.Field, *, path: str, where: str = "") -> pa.Array:
    """Returns the array with the field's type. `where` names the column in the errors, which are conform_batch's."""
    at = where or field.name
    if not field.nullable and array.null_count:
        raise FormatError(f"column {at!r} holds nulls and its schema allows none", path=path)
    target = field.type
    if array.type.equals(target):
        return array
    if pa.types.is_dictionary(array.type):
        if pa.types.is_string_view(target) or pa.types.is_binary_view(target):
            # Arrow has no `take` for views.
            return conform_array(array.dictionary.take(array.indices), field, path=path, where=at)
        values = conform_array(array.dictionary, field.with_nullable(True), path=path, where=at)
        return conform_array(values.take(array.indices), field, path=path, where=at)
    if pa.types.is_nested(array.type):
        array = unsliced(array)
    if pa.types.is_struct(target) and pa.types.is_struct(array.type):
        return _struct(array, target, at, path)
    if is_list(target) and is_list(array.type):
        values = conform_array(array.values, target.value_field, path=path, where=f"{at}.element")
        return with_children(array, target, [values])
    if pa.types.is_map(target) and (pa.types.is_map(array.type) or is_list(array.type)):
        return _map(array, target, at, path)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    return _cast(array, target, at, path)


def _absent(field: pa.Field, count: int, at: str, path: str) -> pa.Array:
    if not field.nullable:
        remedy = "only nullable columns can be added to a table"
        raise FormatError(f"column {at!r} is not in the data and its schema allows no nulls", path=path, remedy=remedy)
    return pa.nulls(count, field.type)


def _struct(array: pa.Array, target: pa.DataType, at: str, path: str) -> pa.Array:
    children = []
    fields = [target.field(index) for index in range(target.num_fields)]
    have = [array.type.field(index).name for index in range(array.type.num_fields)]
    for requested, at_child in zip(fields, places(have, [field.name for field in fields], path=path), strict=True):
        name = f"{at}.{requested.name}"
        if at_child < 0:
            children.append(_absent(requested, len(array), name, path))
            continue
        if array.null_count:
            # The children of a null struct hold placeholders, which are not nulls of the child.
            requested = requested.with_nullable(True)
        children.append(conform_array(array.field(at_child), requested, path=path, where=name))
    return with_children(array, target, children)


def _map(array: pa.Array, target: pa.DataType, at: str, path: str) -> pa.Array:
    entries = unsliced(array.values)
    if not pa.types.is_struct(entries.type) or entries.type.num_fields != 2:
        raise FormatError(f"column {at!r} is {array.type} in the data, which is no map", path=path)
    keys = conform_array(entries.field(0), target.key_field, path=path, where=f"{at}.key")
    items = conform_array(entries.field(1), target.item_field, path=path, where=f"{at}.value")
    made = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
    return with_children(array, target, [made])


def _cast(array: pa.Array, target: pa.DataType, at: str, path: str) -> pa.Array:
    if not _may_change(array.type, target):
        remedy = "Hudi widens int to long, float, double, decimal and string, and changes string to bytes and back"
        message = f"column {at!r} is {array.type} in the data and cannot be read as {target}"
        raise FormatError(message, path=path, remedy=remedy)
    try:
        if _becomes_text(array.type, target):
            return java_text(array).cast(target)
        if _becomes_decimal(array.type, target):
            return decimals(array, target)
        if pa.types.is_float32(array.type) and pa.types.is_float64(target):
            # Hudi converts the float's text, so that 1.1 stays 1.1 (HoodieAvroUtils.rewritePrimaryType,
            # HoodieParquetFileFormatHelper).
            return pc.cast(pc.cast(array, pa.string()), target)
        # Java converts a long to the nearest float silently, as an unsafe cast does; every other cast here is exact or
        # fails.
        return pc.cast(array, target, safe=not pa.types.is_floating(target))
    except pa.ArrowException as error:
        raise CorruptFileError(f"column {at!r}: a value cannot be read as {target}: {error}", path=path) from error


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _becomes_text(have: pa.DataType, want: pa.DataType) -> bool:
    printed = _is_number(have) or pa.types.is_decimal(have) or pa.types.is_date(have)
    return bool(printed and (pa.types.is_string(want) or pa.types.is_large_string(want)))


def _becomes_decimal(have: pa.DataType, want: pa.DataType) -> bool:
    return bool((_is_number(have) or pa.types.is_string(have)) and pa.types.is_decimal(want))


def _may_change(have: pa.DataType, want: pa.DataType) -> bool:
    if pa.types.is_decimal(have) and pa.types.is_decimal(want):
        return bool(want.scale >= have.scale and want.precision - want.scale >= have.precision - have.scale)
    if pa.types.is_timestamp(have) and pa.types.is_timestamp(want):
        # INT96 columns of old writers carry no time zone, and Hudi's own are UTC: a missing zone reads as UTC. A value
        # is the same moment in two zones. Nanoseconds come from INT96 only, whose values Spark cuts to microseconds.
        zones = have.tz is None or want.tz is not None
        return zones and _UNITS.index(have.unit) <= _UNITS.index(want.unit)
    if have in _NUMBERS and want in _NUMBERS:
        return _NUMBERS.index(have) < _NUMBERS.index(want) or bool(pa.types.is_integer(have) and have != want)
    if pa.types.is_fixed_size_binary(have):
        return bool(pa.types.is_binary(want) or pa.types.is_large_binary(want))
    is_date = pa.types.is_string(have) and pa.types.is_date32(want)
    changes = is_date or _becomes_text(have, want) or _becomes_decimal(have, want)
    return bool(changes or (is_text(have) and is_text(want)))


_NUMBERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())
"""The types of numbers in the order in which they widen."""
_UNITS = ("s", "ms", "us", "ns")
_LEAST_PLAIN, _LEAST_POWER = 1e-3, 1e7
"""Java writes numbers from _LEAST_PLAIN to below _LEAST_POWER without an exponent."""
_PLAIN = range(-3, 7)
"""The decimal exponents of such numbers."""


def java_text(array: pa.Array) -> pa.Array:
    """Returns an integer, floating, decimal or date array as a string array in Java's form; nulls stay."""
    texts = pc.cast(array, pa.string())
    if not pa.types.is_floating(array.type):
        return texts
    texts = pc.replace_substring_regex(texts, r"^(-?\d+)$", r"\1.0")
    sizes = np.abs(pc.cast(array.fill_null(1.0), pa.float64()).to_numpy(zero_copy_only=False))
    # Arrow has the digits, but Java places point and exponent by rules of its own. Not-a-number compares false.
    odd = ~((sizes >= _LEAST_PLAIN) & (sizes < _LEAST_POWER))
    if not odd.any():
        return texts
    mask = pa.array(odd)
    return pc.replace_with_mask(texts, mask, pa.array(map(_java_float, texts.filter(mask).to_pylist()), pa.string()))


def decimals(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Returns numbers or text as decimals, rounded half up (BigDecimal.setScale). Raises pyarrow.ArrowInvalid."""
    encoded = (array if pa.types.is_string(array.type) else java_text(array)).dictionary_encode()
    unit, context = Decimal(1).scaleb(-kind.scale), Context(prec=kind.precision, rounding=ROUND_HALF_UP)
    try:
        values = [Decimal(text).quantize(unit, context=context) for text in encoded.dictionary.to_pylist()]
    except InvalidOperation as error:
        raise pa.ArrowInvalid(f"a value is no decimal({kind.precision}, {kind.scale})") from error
    return pa.array(values, kind).take(encoded.indices)


def _java_float(text: str) -> str:
    """Returns Arrow's shortest digits of a float or double in the form of Float.toString and Double.toString."""
    sign, body = ("-", text[1:]) if text.startswith("-") else ("", text)
    if body == "nan":
        return "NaN"
    if body == "inf":
        return f"{sign}Infinity"
    mantissa, _, exponent = body.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return f"{sign}0.0"
    # The value is 0.digits times ten to the power of `point`.
    point = len(digits) - len(fraction) + int(exponent or 0)
    digits = digits.rstrip("0")
    if point - 1 not in _PLAIN:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
