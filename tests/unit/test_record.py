"""Records: immutable values, compared and shown by their fields."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import field
from typing import Any, Generic, TypeVar

import pytest

from clew.record import Record, replace

T = TypeVar("T")


class Point(Record):
    x: int
    y: int = 0


class Named(Point):
    name: str
    tags: list[str] = field(default_factory=list[str])


class Login(Record):
    user: str
    token: str = field(default="", repr=False)
    seen: int = field(default=0, compare=False)


class Box(Record, Generic[T], kw_only=False):
    content: T


def test_records_are_equal_by_their_fields() -> None:
    assert Point(x=1) == Point(x=1, y=0)
    assert hash(Point(x=1)) == hash(Point(x=1, y=0))
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Named(x=1, name="a")


def test_a_field_cannot_be_set() -> None:
    point: Any = Point(x=1)
    with pytest.raises(AttributeError, match="immutable"):
        point.x = 2
    with pytest.raises(AttributeError):
        point.z = 2


def test_arguments_go_by_name_unless_said_otherwise() -> None:
    kind: Any = Point
    with pytest.raises(TypeError):
        kind(1)
    with pytest.raises(TypeError, match="y_"):
        kind(x=1, y_=2)
    assert Box(1) == Box(content=1)


def test_a_subclass_adds_fields_and_makes_defaults_anew() -> None:
    first, second = Named(x=1, name="a"), Named(x=1, name="a")
    first.tags.append("red")
    assert (first.tags, second.tags) == (["red"], [])
    assert repr(second) == "Named(x=1, y=0, name='a', tags=[])"


def test_a_hidden_field_is_not_shown() -> None:
    assert repr(Login(user="ann", token="geheim")) == "Login(user='ann', seen=0)"


def test_a_field_may_be_left_out_of_comparisons() -> None:
    assert Login(user="ann", seen=1) == Login(user="ann", seen=2)
    assert hash(Login(user="ann", seen=1)) == hash(Login(user="ann", seen=2))
    assert Login(user="ann") != Login(user="bob")
    assert Login(user="ann") != "ann"


def test_a_changed_copy_leaves_the_record_as_it_is() -> None:
    point = Point(x=1)
    assert replace(point, y=3) == Point(x=1, y=3)
    assert point == Point(x=1)
    with pytest.raises(TypeError):
        replace(point, z=3)


def test_the_functions_of_data_classes_take_records() -> None:
    named = Named(x=1, name="a")
    assert dataclasses.is_dataclass(named)
    assert dataclasses.replace(named, y=3) == Named(x=1, y=3, name="a")
    assert dataclasses.asdict(Box(named)) == {"content": {"x": 1, "y": 0, "name": "a", "tags": []}}
    assert [(one.name, one.type) for one in dataclasses.fields(Named)][:2] == [
        ("x", "int"),
        ("y", "int"),
    ]
    assert dataclasses.fields(Named)[1].default == 0
    assert dataclasses.fields(Named)[3].default_factory == list[str]


def test_records_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Named(x=1, name="a"))) == Named(x=1, name="a")


def test_a_field_without_an_argument_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Bad\.x: records have no field without argument"):

        class Bad(Record):  # pyright: ignore[reportUnusedClass]
            x: int = field(default=1, init=False)
