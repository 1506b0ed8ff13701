"""Frozen dataclasses as text: units and results, which protocol.py packs for a run.

The form follows the annotations of a class and is worked out once per class. A dataclass becomes the list of its
fields, an enum its value, bytes base64, a Decimal, date or datetime its text, a set a sorted list; a value of a union
becomes a pair: the name of its class, and the value. Both sides run the same release; a value that does not fit the
form exactly is refused. A value comes back equal and of the same types, with two exceptions: a Sequence comes back as a
tuple, and tuples within `Any` come back as lists. `Annotated[X, form]` crosses as the type `form`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass

T = TypeVar("T")
_Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Form:
    """How a type's values cross. `write` is None where JSON takes them; `types` are set where reading only checks."""

    write: _Convert | None
    read: _Convert
    types: frozenset[type] | None = None


def to_text(value: Any) -> str:
    """Returns the text of a dataclass. Raises TypeError for a class or a value that has no form."""
    if not is_dataclass(value):
        raise TypeError(f"a {_name_of(value)} is no dataclass")
    cls: Any = type(value)
    return json.dumps(_written(_form(cls), value), separators=(",", ":"))


def from_text(cls: type[T], text: str | bytes) -> T:
    """Reads the text of to_text. Raises ConfigError for any other text, and the errors of the classes' own checks."""
    kind: Any = cls
    value: T = _checked(cls, lambda: _form(kind).read(json.loads(text)))
    return value


def fields_to_text(value: Any, names: Collection[str]) -> str:
    cls: Any = type(value)
    forms = _field_forms(cls)
    return json.dumps({name: _written(forms[name], getattr(value, name)) for name in names}, separators=(",", ":"))


def fields_from_text(cls: type, text: str | bytes) -> dict[str, Any]:
    """Reads the text that fields_to_text wrote: values by field name. Raises the errors of from_text."""
    kind: Any = cls
    forms = _field_forms(kind)
    return _checked(cls, lambda: {name: forms[name].read(raw) for name, raw in json.loads(text).items()})


def field_names(cls: type) -> tuple[str, ...]:
    """Returns the names of a dataclass's fields, in their order. Raises TypeError for a class that has no form."""
    kind: Any = cls
    return tuple(_field_forms(kind))


def _checked(cls: type, read: Callable[[], T]) -> T:
    try:
        return read()
    except (ValueError, TypeError, KeyError, AttributeError, InvalidOperation) as error:
        remedy = "use the same release on both sides"
        raise ConfigError(f"a {cls.__name__} is not what this version writes: {error}", remedy=remedy) from error


def _written(form: _Form, value: Any) -> Any:
    return value if form.write is None else form.write(value)


@cache
def _field_forms(cls: type) -> dict[str, _Form]:
    # dataclasses.fields finds none in a class that Spark's cloudpickle sent by value: its markers are other objects.
    fields = getattr(cls, "__dataclass_fields__", {}).values()
    if not is_dataclass(cls) or any(not entry.init for entry in fields):
        raise TypeError(f"{cls.__name__} is no dataclass that its fields make")
    hints = get_type_hints(cls, include_extras=True)
    return {entry.name: _form(hints[entry.name]) for entry in fields}


@cache
def _form(hint: Any) -> _Form:
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _form(arguments[1])
    if origin is Literal:
        return _Form(None, partial(_read_member, frozenset(arguments)))
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(*map(_form, arguments), with_texts=arguments[0] is str)
    if origin is tuple and (len(arguments) != 2 or arguments[1] is not Ellipsis):
        return _record(tuple, [_form(part) for part in arguments])
    if origin in (tuple, list, frozenset, Sequence):
        return _items(tuple if origin is Sequence else origin, _form(arguments[0]))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _Form(attrgetter("value"), hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return _dataclass(hint)
    raise TypeError(f"{hint} has no form in which it crosses an engine")


def _as_it_is(value: Any) -> Any:
    return value


def _read_type(kind: type, raw: Any) -> Any:
    if type(raw) is not kind:
        raise TypeError(f"{kind.__name__} is expected, not {_name_of(raw)}")
    return raw


def _read_float(raw: Any) -> float:
    if type(raw) is float or type(raw) is int:
        return float(raw)
    raise TypeError(f"float is expected, not {_name_of(raw)}")


def _read_member(members: frozenset[Any], raw: Any) -> Any:
    if raw not in members:
        raise ValueError(f"{raw!r} is none of {sorted(members)}")
    return raw


_SIMPLE: dict[Any, _Form] = {
    **{kind: _Form(None, partial(_read_type, kind), frozenset({kind})) for kind in (str, int, bool, NoneType)},
    float: _Form(None, _read_float),
    bytes: _Form(
        lambda value: base64.b64encode(value).decode("ascii"),
        lambda raw: base64.b64decode(_read_type(str, raw), validate=True),
    ),
    Decimal: _Form(str, lambda raw: Decimal(_read_type(str, raw))),
    date: _Form(date.isoformat, lambda raw: date.fromisoformat(_read_type(str, raw))),
    datetime: _Form(datetime.isoformat, lambda raw: datetime.fromisoformat(_read_type(str, raw))),
    **dict.fromkeys((Any, object), _Form(None, _as_it_is)),
}


def _record(make: Callable[..., Any], forms: Sequence[_Form]) -> _Form:
    """Returns the form of a list with one item per form: the items of a tuple, or the fields of a dataclass."""
    count = len(forms)
    writes = [(at, form.write) for at, form in enumerate(forms) if form.write is not None]
    checks = [(at, form.types) for at, form in enumerate(forms) if form.types is not None]
    reads = [(at, form.read) for at, form in enumerate(forms) if form.types is None and form.read is not _as_it_is]

    def write(values: tuple[Any, ...]) -> Sequence[Any]:
        if len(values) != count:
            raise TypeError(f"{count} values are expected, not {len(values)}")
        if not writes:
            return values
        written = list(values)
        for at, convert in writes:
            written[at] = convert(written[at])
        return written

    def read(raw: Any) -> Any:
        # The parsed list has no other user, so it is changed in place.
        if type(raw) is not list or len(raw) != count:
            raise TypeError(f"a list of {count} is expected, not {_name_of(raw)}")
        for at, types in checks:
            if type(raw[at]) not in types:
                raise TypeError(f"{_name_of(raw[at])} where another type is expected")
        for at, convert in reads:
            raw[at] = convert(raw[at])
        return make(raw)

    return _Form(write, read)


def _dataclass(cls: type) -> _Form:
    forms = _field_forms(cls)
    record = _record(lambda raw: cls(*raw), list(forms.values()))
    write_values, names = record.write or _as_it_is, list(forms)
    values_of: _Convert = (
        attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)
    )

    def write(value: Any) -> Any:
        if type(value) is not cls:
            raise TypeError(f"{cls.__name__} is expected, not {_name_of(value)}")
        return write_values(values_of(value))

    return _Form(write, record.read)


def _items(make: type, item: _Form) -> _Form:
    """Returns the form of items of one form. Plain types are checked in one step: a unit may have thousands of them."""
    write_item, ordered = item.write, make is frozenset

    def write(value: Any) -> list[Any]:
        written = value if write_item is None else map(write_item, value)
        return sorted(written) if ordered else list(written)

    def read(raw: Any) -> Any:
        return make(_read_all(item, _list(raw)))

    return _Form(write, read)


def _mapping(key: _Form, value: _Form, *, with_texts: bool) -> _Form:
    """Returns the form of a mapping: an object where keys are texts, else pairs of key and value."""
    if not with_texts:
        pair = _record(tuple, (key, value))
        write_pair = pair.write or _as_it_is
        return _Form(
            lambda mapping: list(map(write_pair, mapping.items())), lambda raw: dict(map(pair.read, _list(raw)))
        )
    write_value = value.write

    def write(mapping: Any) -> dict[str, Any]:
        return dict(mapping) if write_value is None else {name: write_value(item) for name, item in mapping.items()}

    def read(raw: Any) -> dict[str, Any]:
        if type(raw) is not dict:
            raise TypeError(f"an object is expected, not {_name_of(raw)}")
        return dict(zip(raw, _read_all(value, raw.values()), strict=True))

    return _Form(write, read)


def _union(members: tuple[Any, ...]) -> _Form:
    kinds = [item for item in members if item is not NoneType]
    if Any in kinds or object in kinds:
        return _SIMPLE[Any]
    if len(kinds) == 1:
        return _optional(_form(kinds[0]))
    optional = NoneType in members
    by_type: dict[Any, tuple[str, _Convert | None]] = {}
    by_name: dict[str, tuple[_Convert, frozenset[type] | None]] = {}

    def work_out() -> None:
        """Works the members' forms out when the first value crosses: a class may hold a union with itself in it."""
        forms = {get_origin(item) or item: _form(item) for item in kinds}
        by_name.update({kind.__name__: (form.read, form.types) for kind, form in forms.items()})
        by_type.update({kind: (kind.__name__, form.write) for kind, form in forms.items()})

    def write(value: Any) -> Any:
        if value is None and optional:
            return None
        if not by_type:
            work_out()
        if type(value) not in by_type:
            raise TypeError(f"{_name_of(value)} is none of {', '.join(by_name)}")
        name, convert = by_type[type(value)]
        return name, value if convert is None else convert(value)

    def read(raw: Any) -> Any:
        if raw is None and optional:
            return None
        name, value = _list(raw, 2)
        if not by_name:
            work_out()
        convert, types = by_name[name]
        return value if types is not None and type(value) in types else convert(value)

    return _Form(write, read)


def _optional(form: _Form) -> _Form:
    write_there, read_there = form.write, form.read

    def write(value: Any) -> Any:
        return None if value is None or write_there is None else write_there(value)

    def read(raw: Any) -> Any:
        return None if raw is None else read_there(raw)

    types = None if form.types is None else form.types | {NoneType}
    return _Form(None if write_there is None else write, read, types)


def _read_all(form: _Form, raw: Collection[Any]) -> Iterable[Any]:
    if form.types is None:
        return map(form.read, raw)
    wrong = set(map(type, raw)) - form.types
    if wrong:
        raise TypeError(f"{', '.join(sorted(kind.__name__ for kind in wrong))} where another type is expected")
    return raw


def _list(raw: Any, count: int | None = None) -> list[Any]:
    if type(raw) is not list or (count is not None and len(raw) != count):
        raise TypeError(f"a list{'' if count is None else f' of {count}'} is expected, not {_name_of(raw)}")
    return raw


def _name_of(value: Any) -> str:
    return type(value).__name__
