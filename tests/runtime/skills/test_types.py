"""Types as schemas, payloads as values, values as results."""

import dataclasses
import datetime as dt
import enum
import json
import sys
import uuid
from decimal import Decimal
from types import GenericAlias
from typing import Annotated, Any, Literal, Optional, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carnet.core.people.identity import Skill
from carnet.errors import SchemaInvalid
from carnet.runtime.skills.schemas import CompiledSchemas
from carnet.runtime.skills.types import OBJECT, Shape, as_object, plain, shape_of


class Colour(enum.Enum):
    """By name."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    """By number."""

    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    """A dataclass."""

    x: int
    label: str = "p"


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """A Struct that takes no more than it has."""

    sku: Annotated[str, msgspec.Meta(max_length=8)]
    count: int = 1


class Movie(TypedDict):
    """A dictionary with a type."""

    title: str
    year: int


class Note(pydantic.BaseModel):
    """What a user of pydantic would write."""

    model_config = pydantic.ConfigDict(extra="forbid")

    id: uuid.UUID
    at: dt.datetime
    colour: Colour
    price: Decimal
    tags: set[str]
    pair: tuple[int, str]
    by: str = pydantic.Field(alias="from", max_length=5)


class Holding(pydantic.BaseModel):
    """One that holds itself."""

    name: str
    held: "Holding | None" = None


NOTE = {
    "id": "00000000-0000-0000-0000-000000000003",
    "at": "2026-11-15T06:46:52Z",
    "colour": "red",
    "price": "12.50",
    "tags": ["a"],
    "pair": [1, "x"],
    "from": "ann",
}


def check(shape: Shape, value: dict[str, Any]) -> None:
    """Let the schema of a shape judge, as what is given and as what is returned."""
    skill = Skill(
        id="s", name="s", description="s", input_schema=shape.schema, output_schema=shape.schema
    )
    CompiledSchemas().check_input("a", skill, value)
    CompiledSchemas().check_output("a", skill, value)


BASICS: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**53) + 1, 2**53 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    str: st.text(),
    bytes: st.binary(max_size=20),
    dt.datetime: st.datetimes() | st.datetimes(timezones=st.just(dt.UTC)),
    dt.date: st.dates(),
    dt.time: st.times(),
    dt.timedelta: st.timedeltas(dt.timedelta(days=-1000), dt.timedelta(days=1000)),
    uuid.UUID: st.uuids(),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False),
    Colour: st.sampled_from(Colour),
    Level: st.sampled_from(Level),
    Literal["a", "b"]: st.sampled_from(["a", "b"]),
    Point: st.builds(Point, st.integers(0, 9), st.text(max_size=3)),
    Line: st.builds(Line, st.text(max_size=8), st.integers(0, 9)),
    Movie: st.builds(lambda title: Movie(title=title, year=1999), st.text(max_size=3)),
}

Described = tuple[Any, st.SearchStrategy[Any]]


def _grown(inner: st.SearchStrategy[Described]) -> st.SearchStrategy[Described]:
    """Types built of others, each with its values."""

    def build(pair: Described) -> st.SearchStrategy[Described]:
        of, values = pair
        grown: list[Described] = [
            (GenericAlias(list, (of,)), st.lists(values, max_size=3)),
            (GenericAlias(tuple, (of, int)), st.tuples(values, BASICS[int])),
            (GenericAlias(dict, (str, of)), st.dictionaries(st.text(max_size=3), values)),
            (Optional[of], st.none() | values),  # noqa: UP045  `|` is not for every type
        ]
        return st.sampled_from(grown)

    return inner.flatmap(build)


def _set_of(of: Any) -> Described:
    return GenericAlias(set, (of,)), st.sets(BASICS[of], max_size=3)


HASHABLE = st.sampled_from([int, str, uuid.UUID, dt.date, Colour])
SETS = HASHABLE.map(_set_of)
TYPES = st.recursive(st.sampled_from(list(BASICS.items())) | SETS, _grown, max_leaves=3)


@st.composite
def made_up(draw: st.DrawFn) -> tuple[type, Any]:
    """A dataclass with random fields, and an instance of it."""
    fields = draw(st.lists(TYPES, max_size=5))
    names = [f"f{n}" for n in range(len(fields))]
    kind = dataclasses.make_dataclass(
        "Made", [(name, of) for name, (of, _) in zip(names, fields, strict=True)]
    )
    values = {name: draw(values) for name, (_, values) in zip(names, fields, strict=True)}
    return kind, kind(**values)


@settings(max_examples=150)
@given(made_up())
def test_the_schema_of_a_dataclass_takes_what_it_wrote_and_reads_it_back(
    made: tuple[type, Any],
) -> None:
    kind, value = made
    shape = shape_of(kind)
    written = shape.write(value)
    check(shape, written)
    assert shape.read(written) == value


@settings(max_examples=50)
@given(TYPES)
def test_a_type_that_is_no_object_stands_under_result(described: Described) -> None:
    kind, _ = described
    shape = shape_of(kind, returned=True)
    assert shape.schema["type"] == "object"
    if shape.is_wrapped:
        assert list(shape.schema["properties"]) == ["result"]
        assert shape.schema["required"] == ["result"]


def test_a_pydantic_model_reads_and_writes_what_strict_readers_refuse() -> None:
    shape = shape_of(Note)
    check(shape, NOTE)
    note = shape.read(NOTE)
    assert note.id == uuid.UUID(int=3)
    assert note.at == dt.datetime(2026, 11, 15, 6, 46, 52, tzinfo=dt.UTC)
    assert (note.colour, note.price) == (Colour.RED, Decimal("12.50"))
    assert (note.tags, note.pair, note.by) == ({"a"}, (1, "x"), "ann")
    returned = shape_of(Note, returned=True)
    written = returned.write(note)
    check(returned, written)
    assert written == NOTE
    assert returned.is_one(note)
    assert not returned.is_one(NOTE)


def test_what_a_model_forbids_is_refused_by_its_schema() -> None:
    shape = shape_of(Note)
    with pytest.raises(SchemaInvalid) as refused:
        check(shape, NOTE | {"more": 1})
    assert refused.value.safe_text == "Field 'more' is not allowed (additionalProperties)"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"price": "+"}, "Field 'price' is not a value of its type (decimal_parsing)"),
        ({"at": "soon"}, "Field 'at' is not a value of its type (datetime_from_date_parsing)"),
        ({"pair": [1]}, "Field 'pair[1]' is not a value of its type (missing)"),
    ],
)
def test_what_a_model_says_about_a_value_is_told_without_the_value(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(SchemaInvalid) as refused:
        shape_of(Note).read(NOTE | change)
    assert refused.value.safe_text == message


def test_a_class_need_not_be_pydantics_to_describe_itself() -> None:
    class Own:
        def __init__(self, size: int) -> None:
            self.size = size

        @classmethod
        def model_json_schema(cls, mode: str) -> dict[str, Any]:
            return {"type": "object", "title": mode}

        @classmethod
        def model_validate_json(cls, given: bytes) -> "Own":
            read = json.loads(given)
            if "size" not in read:
                raise ValueError("secret")
            return cls(read["size"])

        def model_dump(self, *, mode: str, by_alias: bool) -> dict[str, Any]:
            return {"size": self.size, "mode": mode, "by_alias": by_alias}

    shape = shape_of(Own)
    assert shape.schema == {"type": "object", "title": "validation"}
    assert shape.write(shape.read({"size": 3})) == {"size": 3, "mode": "json", "by_alias": True}
    with pytest.raises(SchemaInvalid) as refused:
        shape.read({})
    assert refused.value.safe_text == "Field 'payload' is not a value of its type (value_error)"


def test_models_within_other_types_are_read_and_written() -> None:
    @dataclasses.dataclass
    class Shelf:
        notes: list[Note]

    shape = shape_of(Shelf)
    check(shape, {"notes": [NOTE]})
    shelf = shape.read({"notes": [NOTE]})
    assert shelf.notes[0].by == "ann"
    assert shape.is_one(shelf)
    returned = shape_of(Shelf, returned=True)
    assert returned.write(shelf) == {"notes": [NOTE]}
    with pytest.raises(SchemaInvalid) as refused:
        shape.read({"notes": [NOTE | {"colour": "secret"}]})
    assert refused.value.facts["field"] == "notes[0].colour"
    several = shape_of(list[Note], returned=True)
    assert several.write(shelf.notes) == {"result": [NOTE]}
    assert not several.is_one(shelf.notes)


def test_a_type_that_holds_itself_is_described_at_once() -> None:
    schema = shape_of(Holding).schema
    assert schema["type"] == "object"
    check(shape_of(Holding), {"name": "a", "held": {"name": "b"}})

    @dataclasses.dataclass
    class Leaf:
        point: Point

    flat = shape_of(Leaf).schema
    assert flat["properties"]["point"] == {"$ref": "#/$defs/Point"}
    assert list(flat["$defs"]) == ["Point"]
    assert "$defs" not in shape_of(Point).schema


def test_one_of_several_objects_is_an_object() -> None:
    class Cat(msgspec.Struct, tag=True):
        lives: int

    class Dog(msgspec.Struct, tag=True):
        tricks: int

    shape = shape_of(Cat | Dog)
    assert not shape.is_wrapped
    assert shape.read({"type": "Dog", "tricks": 2}) == Dog(2)
    assert shape.write(Cat(9)) == {"type": "Cat", "lives": 9}
    assert not shape.is_one(Cat(9))
    assert shape_of(Cat | None).is_wrapped


@pytest.mark.parametrize("kind", [None, type(None), Any, object])
def test_without_a_type_whatever_comes_is_taken(kind: Any) -> None:
    shape = shape_of(kind)
    assert shape.schema == OBJECT
    assert shape.read({"a": 1}) == {"a": 1}
    assert not shape.is_one({"a": 1})


def test_object_within_a_type_is_whatever_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pydantic")  # which would describe it too
    shape = shape_of(dict[str, object], returned=True)
    assert not shape.is_wrapped
    assert shape.schema == {
        "type": "object",
        "additionalProperties": {"description": "anything"},
    }
    assert shape.read({"a": [1]}) == {"a": [1]}
    assert shape.write({"a": dt.date(2026, 11, 15)}) == {"a": "2026-11-15"}


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, {}),
        ("text", {"result": "text"}),
        ([Point(1)], {"result": [{"x": 1, "label": "p"}]}),
        ({"a": {Colour.RED}}, {"a": ["red"]}),
        (Line("s"), {"sku": "s", "count": 1}),
        (Holding(name="x"), {"name": "x", "held": None}),
    ],
)
def test_any_value_is_written_as_an_object(value: object, written: dict[str, Any]) -> None:
    assert as_object(value) == written


def test_a_json_schema_stands_for_itself() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    shape = shape_of(schema)
    assert shape.schema is schema
    assert shape.write({"a": Level.HIGH}) == {"a": 2}


def test_what_has_no_json_form_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="a object has no JSON form"):
        plain({"a": object()})


@pytest.mark.parametrize(
    ("kind", "payload", "message"),
    [
        (Point, {}, "Field 'x' is required"),
        (Point, {"x": "secret"}, "Field 'x' is not a value of its type (int)"),
        (Point, {"x": 1.5}, "Field 'x' is not a value of its type (int)"),
        (Point, {"x": 1e17}, "Field 'x' is not a value of its type (int)"),
        (Point, [], "Field 'payload' is not a value of its type (object)"),
        (dict[str, Point], {"secret": {}}, "Field 'x' is required"),
        (dict[int, int], {"secret": 1}, "Field 'payload' is not a value of its type (int)"),
        (Line, {"sku": "x" * 9}, "Field 'sku' is not a value of its type (str of length <= 8)"),
    ],
)
def test_what_does_not_convert_is_told_by_its_place(kind: Any, payload: Any, message: str) -> None:
    with pytest.raises(SchemaInvalid) as refused:
        shape_of(kind).read(payload)
    assert refused.value.safe_text == message


@pytest.mark.parametrize(
    ("kind", "payload", "value"),
    [
        (Point, {"x": 3.0}, Point(3)),
        (dict[str, int | None], {"a": 1e2, "b": None}, {"a": 100, "b": None}),
        (list[int], {"result": [2.0, 1]}, [2, 1]),
        (dict[str, float], {"a": 2.0, "b": 1}, {"a": 2.0, "b": 1.0}),
    ],
)
def test_a_whole_number_is_an_integer_however_it_was_spelled(
    kind: Any, payload: Any, value: object
) -> None:
    assert repr(shape_of(kind).read(payload)) == repr(value)


def test_numbers_that_are_names_of_fields_are_read() -> None:
    assert shape_of(dict[int, str]).read({"7": "x"}) == {7: "x"}


def test_a_field_the_type_has_no_place_for_is_dropped_unless_it_forbids_it() -> None:
    check(shape_of(Point), {"x": 1, "more": 2})
    assert shape_of(Point).read({"x": 1, "more": 2}) == Point(1)
    with pytest.raises(SchemaInvalid, match="Field 'more' is not allowed"):
        check(shape_of(Line), {"sku": "s", "more": 2})


def test_a_dictionary_instead_of_the_output_type_is_what_it_is() -> None:
    assert shape_of(Point, returned=True).write({"x": 1}) == {"x": 1}
    assert shape_of(Point, returned=True).write([1]) == {"result": [1]}


class Opaque:
    """Neither described nor known."""


def test_a_type_that_nobody_can_describe_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="cannot be described"):
        shape_of(list[Opaque])
    monkeypatch.delitem(sys.modules, "pydantic")
    with pytest.raises(TypeError, match="custom types"):
        shape_of(list[Opaque])
