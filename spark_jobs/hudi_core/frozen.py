"""Makes frozen dataclasses with slots in a fifth of the time that the standard library takes: `from hudi_core.frozen
import dataclass`. A command imports some 300 of them, which cost a quarter of the CPU of a small write (decision 0033).

They are dataclasses to `dataclasses.fields`, `replace` and `asdict`, to pickle and to type checkers.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

_FACTORY: Final = object()
"""Stands for the value of a field that a factory makes."""
_OF_A_CLASS: Final = ("__dict__", "__weakref__")
"""What each class gets anew."""
_FLAGS: Final = [{"frozen": True, "slots": True}, {"frozen": True, "slots": True, "init": False}]
_ORDER: Final = {f"__{name}__": getattr(operator, name) for name in ("lt", "le", "gt", "ge")}


def _frozen(cls: type, *, order: bool) -> type:
    cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass() writes one, by a signature, which takes long
    collected: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    fields = dataclasses.fields(collected)
    names = [field.name for field in fields]
    members = {name: value for name, value in vars(collected).items() if name not in names and name not in _OF_A_CLASS}
    inherited = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}
    compared = [field.name for field in fields if field.compare]
    hashed = [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
    has_own_hash = members.get("__hash__") is not None
    values = _values_of(compared)
    methods = {
        "__repr__": _repr,
        "__eq__": _comparison(operator.eq, values),
        **({name: _comparison(compare, values) for name, compare in _ORDER.items()} if order else {}),
        "__getstate__": _state,
        "__setstate__": _set_state,
    }
    slots = tuple(name for name in names if name not in inherited)
    refusals = {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    members = {**methods, **members, **refusals, "__slots__": slots}
    if not has_own_hash:
        members["__hash__"] = _hash(_values_of(hashed))
    slotted = type(cls)(cls.__name__, cls.__bases__, members)
    slotted.__qualname__ = cls.__qualname__
    if "__init__" not in members:
        slotted.__init__ = _init(slotted, fields)  # type: ignore[misc]
    return slotted


def _init(cls: type, fields: Iterable[dataclasses.Field[Any]]) -> Callable[..., None]:
    """Returns a constructor. It sets the slots past `__setattr__`, which refuses."""
    scope: dict[str, Any] = {"FACTORY": _FACTORY}
    parameters: dict[object, list[str]] = {False: [], True: []}
    lines = []
    for field in fields:
        name, value = field.name, field.name
        scope[f"set_{name}"] = getattr(cls, name).__set__
        if field.default_factory is not dataclasses.MISSING:
            scope[f"new_{name}"] = field.default_factory
            value = f"new_{name}() if {name} is FACTORY else {name}" if field.init else f"new_{name}()"
            parameters[field.kw_only] += [f"{name}=FACTORY"] if field.init else []
        elif field.default is not dataclasses.MISSING:
            scope[f"default_{name}"] = field.default
            value = name if field.init else f"default_{name}"
            parameters[field.kw_only] += [f"{name}=default_{name}"] if field.init else []
        elif field.init:
            parameters[field.kw_only].append(name)
        else:
            continue
        lines.append(f"    set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    keywords = ["*", *parameters[True]] if parameters[True] else []
    signature = ", ".join(["self", *parameters[False], *keywords])
    exec(f"def __init__({signature}):\n" + "\n".join(lines or ["    pass"]), scope)
    scope["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    constructor: Callable[..., None] = scope["__init__"]
    return constructor


def _values_of(names: list[str]) -> Callable[[Any], Any]:
    """Returns what makes a tuple of an object's fields."""
    values = operator.attrgetter(*names) if names else lambda _: ()
    return values if len(names) != 1 else lambda self: (values(self),)


def _comparison(compare: Callable[[Any, Any], bool], values: Callable[[Any], Any]) -> Callable[[Any, object], bool]:
    def compared(self: Any, other: object) -> bool:
        return compare(values(self), values(other)) if other.__class__ is self.__class__ else NotImplemented

    return compared


def _hash(values: Callable[[Any], Any]) -> Callable[[Any], int]:
    return lambda self: hash(values(self))


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: Iterable[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, **flags: bool) -> Any:
        """As the standard library's, which makes those with other flags than `frozen=True, slots=True`."""
        order = flags.pop("order", False)
        if cls is not None or flags not in _FLAGS:
            return dataclasses.dataclass(cls, **flags, order=order)
        return partial(_frozen, order=order)
