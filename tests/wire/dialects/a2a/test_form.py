"""How a request was written, as it is kept with its call."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from carnet.wire.dialects.a2a.form import PLAIN, Form, form_of
from tests.wire.dialects import scene
from tests.wire.dialects.a2a.scene import MESSAGE, call

FORMS = st.builds(
    Form,
    binding=st.sampled_from(["rpc", "http"]),
    version=st.sampled_from(["1.0", "0.3"]),
    id=st.none() | st.integers(-(2**53), 2**53) | st.text(max_size=9),
    history=st.none() | st.integers(0, 9),
    artifacts=st.booleans(),
    extensions=st.lists(st.just("urn:a")).map(tuple),
    message=st.none() | st.just(MESSAGE),
    seen=st.none() | st.text(max_size=9),
)


@given(FORMS)
def test_a_form_that_was_kept_is_the_same(form: Form) -> None:
    assert form_of(call(form)) == form
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(form.kept()))
    assert msgspec.convert(stored, Form) == form


def test_a_call_without_one_is_told_plainly() -> None:
    assert form_of(scene.call(task="t")) is PLAIN
