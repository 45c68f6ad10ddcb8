"""What comes over the wire is JSON: a model that is strict about types reads it as such."""

from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict

from carnet.errors import SchemaInvalid
from carnet.runtime.skills.types import shape_of

WORDS: dict[str, Any] = {
    "at": "2026-01-01T00:00:00Z",
    "id": "00000000-0000-0000-0000-000000000001",
    "mood": "good",
}


class Mood(Enum):
    """Of which there is one."""

    GOOD = "good"


class Exact(BaseModel):
    """A model that converts nothing but what JSON has no type for."""

    model_config = ConfigDict(strict=True)
    at: datetime
    id: UUID
    mood: Mood
    count: int = 0


def test_a_strict_model_is_given_its_datetimes_uuids_and_enums() -> None:
    read = shape_of(Exact).read(WORDS)
    assert (read.at.year, read.id, read.mood) == (2026, UUID(int=1), Mood.GOOD)
    (inner,) = shape_of(list[Exact]).read({"result": [WORDS]})
    assert inner == read


@pytest.mark.parametrize("kind", [Exact, list[Exact]])
def test_and_is_strict_all_the_same(kind: Any) -> None:
    wrong = WORDS | {"count": "1"}
    with pytest.raises(SchemaInvalid) as refused:
        shape_of(kind).read(wrong if kind is Exact else {"result": [wrong]})
    assert "count'" in refused.value.safe_text
