"""Numbers and dates as Java's toString writes them, for a column promoted to string.

As HoodieAvroUtils.rewritePrimaryType.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.compute as pc

_PLAIN = range(-3, 7)
"""Decimal exponents for which Java writes no exponent: 0.001 up to, not including, 10^7."""


def java_text(array: pa.Array) -> pa.Array:
    """The values of an integer, floating, decimal or date array as a string array; nulls stay."""
    if not pa.types.is_floating(array.type):
        return pc.cast(array, pa.string())
    # Once per distinct value: Arrow has the digits, but Java places point and exponent by rules of its own.
    encoded = pc.cast(array, pa.string()).dictionary_encode()
    texts = pa.array([_java_float(text) for text in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)


def decimals(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers or text as decimals of type `kind`, rounded half up by their text (BigDecimal.setScale); nulls stay.

    Raises pyarrow.ArrowInvalid for text that is no number and for a value of too many digits.
    """
    encoded = (array if pa.types.is_string(array.type) else java_text(array)).dictionary_encode()
    unit, context = Decimal(1).scaleb(-kind.scale), Context(prec=kind.precision, rounding=ROUND_HALF_UP)
    try:
        values = [Decimal(text).quantize(unit, context=context) for text in encoded.dictionary.to_pylist()]
    except InvalidOperation as error:
        raise pa.ArrowInvalid(f"a value is no decimal({kind.precision}, {kind.scale})") from error
    return pa.array(values, kind).take(encoded.indices)


def _java_float(text: str) -> str:
    """The shortest digits of a float or double, from Arrow, in the form of Float.toString and Double.toString."""
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
