"""Server-sent events: the same events however the bytes arrive, and no way to add one."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carnet.wire.grammar import json
from carnet.wire.grammar.sse import (
    SseEvent,
    SseInvalid,
    SseOverflow,
    SseReader,
    write_comment,
    write_event,
)

BOM = b"\xef\xbb\xbf"

SCENE = (
    BOM
    + b": hello\n\n"
    + 'data: {"text":"größe 😀"}\n\n'.encode()
    + b"event: text-delta\nid: 7\nretry: 1500\ndata: one\ndata:two\ndata:  three\n\n\n"
    + b"data\n\nid: 8\n\nevent: only\n\n"
    + b"data: [DONE]\n\n"
)
EXPECTED = [
    SseEvent("message", '{"text":"größe 😀"}'),
    SseEvent("text-delta", "one\ntwo\n three", "7", 1500),
    SseEvent("message", ""),
    SseEvent("message", "[DONE]"),
]

line_ends = st.sampled_from([b"\n", b"\r", b"\r\n"])
scraps = st.sampled_from(
    [
        *(b"data: x", b"data:", b"data", b"data:  y", b"event: e", b"event:", b"id: 1", b"id"),
        *(b"id: a\x00b", b"retry: 5", b"retry: x", b": note", b":", b"", b"", b"", b"other: z"),
        *("data: é\u2028😀".encode(), BOM, BOM + b"data: b", b" data: spaced", b"data : no"),
    ]
)


def read_all(*chunks: bytes, deliver_trailing: bool = False) -> list[SseEvent]:
    """The events of a stream that arrives in these chunks."""
    reader = SseReader(deliver_trailing=deliver_trailing)
    return [event for chunk in chunks for event in reader.feed(chunk)] + reader.close()


def read_by_the_book(stream: str) -> list[tuple[str, str]]:
    """The WHATWG algorithm, line by line and in no hurry."""
    stream = stream.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    events, data, kind = [], "", ""
    for line in stream.split("\n")[:-1]:
        field, _, value = line.partition(":")
        value = value[1:] if value[:1] == " " else value
        if not line:
            if data:
                events.append((kind or "message", data[:-1]))
            data, kind = "", ""
        elif field == "data":
            data += value + "\n"
        elif field == "event":
            kind = value
    return events


def test_a_stream_is_read_into_events() -> None:
    assert read_all(SCENE) == EXPECTED


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"], ids=["lf", "cr", "crlf"])
def test_a_cut_at_any_place_changes_nothing(line_end: bytes) -> None:
    stream = SCENE.replace(b"\n", line_end)
    for cut in range(len(stream) + 1):
        assert read_all(stream[:cut], stream[cut:]) == EXPECTED, cut
    assert read_all(*(stream[at : at + 1] for at in range(len(stream)))) == EXPECTED
    assert read_all(*(stream[at : at + 2] for at in range(0, len(stream), 2))) == EXPECTED


@given(
    lines=st.lists(st.tuples(scraps, line_ends)),
    cuts=st.lists(st.integers(0, 200)),
    trailing=st.booleans(),
)
@settings(deadline=None)
def test_any_stream_cut_anywhere_is_read_by_the_book(
    lines: list[tuple[bytes, bytes]], cuts: list[int], *, trailing: bool
) -> None:
    stream = b"".join(line + end for line, end in lines)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[a:b] for a, b in pairwise(places)]
    whole = read_all(stream, deliver_trailing=trailing)
    assert read_all(*chunks, deliver_trailing=trailing) == whole
    if not trailing:
        found = [(event.event, event.data) for event in whole]
        assert found == read_by_the_book(stream.decode())


@given(st.lists(scraps))
@settings(deadline=None)
def test_the_three_line_ends_are_equal(lines: list[bytes]) -> None:
    by_lf, by_cr, by_crlf = (
        read_all(b"".join(line + end for line in lines)) for end in (b"\n", b"\r", b"\r\n")
    )
    assert by_lf == by_cr == by_crlf


def test_an_event_is_delivered_with_its_blank_line_and_not_later() -> None:
    for line_end in (b"\n", b"\r"):
        reader = SseReader()
        assert reader.feed(b"data: x" + line_end) == []
        assert reader.feed(line_end) == [SseEvent("message", "x")]
    reader = SseReader()
    assert reader.feed(b"data: x\r\n\r") == [SseEvent("message", "x")]
    assert reader.feed(b"") == []
    assert reader.feed(b"\n") == []
    assert reader.feed(b"data: y\n\n") == [SseEvent("message", "y")]


def test_a_line_feed_after_a_carriage_return_is_dropped_once_only() -> None:
    reader = SseReader()
    assert reader.feed(b"data: x\r") == []
    assert reader.feed(b"\n") == []
    assert reader.feed(b"\n") == [SseEvent("message", "x")]


def test_a_stream_that_ends_inside_an_event_drops_it() -> None:
    assert read_all(b"data: x\n") == []
    assert read_all(b"data: x\n\ndata: y") == [SseEvent("message", "x")]


def test_a_stream_that_ends_inside_an_event_delivers_it_if_asked() -> None:
    for stream in (b"data: x", b"data: x\n", b"data: x\r\n", b"data: x\n\n"):
        assert read_all(stream, deliver_trailing=True) == [SseEvent("message", "x")]
    assert read_all(b"id: 1\ndata: x\ndata: y", deliver_trailing=True) == [
        SseEvent("message", "x\ny", "1")
    ]
    assert read_all(b": bye", deliver_trailing=True) == []
    assert read_all(b"", deliver_trailing=True) == []


def test_closing_twice_delivers_once() -> None:
    reader = SseReader(deliver_trailing=True)
    reader.feed(b"data: x")
    assert len(reader.close()) == 1
    assert reader.close() == []


def test_comments_and_unknown_fields_are_skipped() -> None:
    assert read_all(b": note\n\n:\n\nfoo: bar\n\n data: no\n\nDATA: no\n\n") == []
    assert read_all(b": note\ndata: x\nfoo: bar\n\n") == [SseEvent("message", "x")]


def test_one_space_after_the_colon_is_not_data() -> None:
    assert [event.data for event in read_all(b"data:a\n\ndata: b\n\ndata:  c\n\ndata:\td\n\n")] == [
        "a",
        "b",
        " c",
        "\td",
    ]


def test_a_colon_in_the_data_is_data() -> None:
    assert read_all(b"data:a: b:c\nevent: x:y\n\n") == [SseEvent("x:y", "a: b:c")]


def test_an_empty_event_name_is_a_message() -> None:
    assert read_all(b"event: x\nevent:\ndata: 1\n\n") == [SseEvent("message", "1")]


def test_an_event_name_does_not_outlive_its_frame() -> None:
    assert read_all(b"event: x\n\ndata: 1\n\n") == [SseEvent("message", "1")]


def test_the_last_id_is_remembered_also_from_a_frame_without_data() -> None:
    reader = SseReader()
    assert reader.last_event_id == ""
    assert reader.feed(b"id: 1\ndata: x\n\n") == [SseEvent("message", "x", "1")]
    assert reader.feed(b"data: y\n\n") == [SseEvent("message", "y")]
    assert reader.last_event_id == "1"
    reader.feed(b"id: 2\n\n")
    assert reader.last_event_id == "2"
    reader.feed(b"id: a\x00b\ndata: z\n\nid: 9\n")
    assert reader.last_event_id == "2"
    reader.close()
    assert reader.last_event_id == "2"
    assert reader.feed(b"id\ndata: x\n\n") == [SseEvent("message", "x", "")]
    assert reader.last_event_id == ""


@pytest.mark.parametrize(
    ("value", "retry"),
    [("0", 0), ("007", 7), ("999999999", 999_999_999), ("1000000000", None), ("9" * 9999, None)]
    + [(text, None) for text in ("", "-1", "+1", "1.5", "1_0", "٣", "４", "²", "5 ", "x")],
)
def test_a_retry_is_ascii_digits_or_is_ignored(value: str, retry: int | None) -> None:
    stream = f"retry: {value}\ndata: x\n\n".encode()
    assert read_all(stream) == [SseEvent("message", "x", None, retry)]


def test_a_byte_order_mark_is_dropped_at_the_start_only() -> None:
    assert read_all(BOM + b"data: x\n\n") == [SseEvent("message", "x")]
    assert read_all(BOM + BOM + b"data: x\n\n") == []
    assert read_all(b"data: x\n\n" + BOM + b"data: y\n\n") == [SseEvent("message", "x")]
    assert read_all(BOM + b"\n\ndata: x\n\n") == [SseEvent("message", "x")]


@pytest.mark.parametrize("bad", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xe2\x82", b"\xf8\x88"])
def test_a_stream_that_is_not_utf8_is_refused(bad: bytes) -> None:
    for stream in (b"data: " + bad + b"\n\n", b"data: ok\n\n: " + bad + b"\n\n"):
        with pytest.raises(SseInvalid, match="not UTF-8") as caught:
            SseReader().feed(stream)
        assert caught.value.__suppress_context__


def test_line_breaks_of_unicode_do_not_end_a_line() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    assert read_all(f"data: {text}\n\n".encode()) == [SseEvent("message", text)]


@pytest.mark.parametrize("size", [30, 31])
@pytest.mark.parametrize("step", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    "before", [b"", b"\n", b"\r\n\r\n\r\n", b"data: ok\n\n", b"data: ok\n\n\n"]
)
def test_an_event_may_be_as_large_as_allowed_and_no_larger(
    before: bytes, size: int, step: int
) -> None:
    frame = b"data: " + b"x" * (size - 6)
    stream = before + frame + b"\n\n" + b"data: ok\n\n"
    chunks = [stream[at : at + step] for at in range(0, len(stream), step)]
    reader = SseReader(max_event_bytes=30)
    if size > 30:
        with pytest.raises(SseOverflow, match="larger than 30 bytes"):
            [reader.feed(chunk) for chunk in chunks]
    else:
        events = [event.data for chunk in chunks for event in reader.feed(chunk)]
        assert events[-2:] == ["x" * 24, "ok"]


def test_the_size_counts_bytes_and_not_characters() -> None:
    frame = "data: ééééé\n\n".encode()
    assert len(SseReader(max_event_bytes=16).feed(frame)) == 1
    with pytest.raises(SseOverflow):
        SseReader(max_event_bytes=15).feed(frame)


def test_a_stream_without_blank_lines_does_not_grow_for_ever() -> None:
    with pytest.raises(SseOverflow):
        read_all(*[b": note\n" * 1000] * 100)


def test_many_small_events_may_arrive_in_one_large_chunk() -> None:
    reader = SseReader(max_event_bytes=10)
    assert reader.feed(b"data: x\n\n" * 1000) == [SseEvent("message", "x")] * 1000


def test_an_event_is_written_with_its_id_and_name() -> None:
    assert write_event(b"{}") == b"data: {}\n\n"
    assert write_event(b"{}", event="done") == b"event: done\ndata: {}\n\n"
    assert write_event(b"{}", id="7") == b"id: 7\ndata: {}\n\n"
    assert write_event(b"{}", event="done", id="7") == b"id: 7\nevent: done\ndata: {}\n\n"


@pytest.mark.parametrize("data", [b"a\nb", b"a\rb", b"\r\n", b'{}\n\nevent: done\ndata: {"x":1}'])
def test_data_of_more_than_one_line_is_not_written(data: bytes) -> None:
    with pytest.raises(SseInvalid, match="one line"):
        write_event(data)


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "\0", "a\u2028b", "\x85", "\x1b[0m"])
def test_no_name_id_or_comment_can_break_its_line(text: str) -> None:
    with pytest.raises(SseInvalid, match="on one line"):
        write_event(b"{}", event=text)
    with pytest.raises(SseInvalid, match="on one line"):
        write_event(b"{}", id=text)
    with pytest.raises(SseInvalid, match="on one line"):
        write_comment(text)


def test_a_comment_is_read_as_nothing() -> None:
    assert write_comment("ping") == b": ping\n\n"
    assert read_all(write_comment("") + write_comment("data: x") + b"data: y\n\n") == [
        SseEvent("message", "y")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "x\n\nevent: done\ndata: {}",
        "x\r\revent: done\rdata: {}\r\r",
        "a\u2028\u2028data: b",
        "\0\x85",
    ],
)
def test_text_inside_json_cannot_add_an_event(text: str) -> None:
    frame = write_event(json.write({"delta": text}), event="text-delta", id="1")
    (event,) = read_all(frame)
    assert (event.event, event.id) == ("text-delta", "1")
    assert json.read(event.data.encode()) == {"delta": text}
    assert len(frame.decode().splitlines()) == 4


names = st.text().filter(lambda text: text.isprintable())


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n")),
    st.none() | names,
    st.none() | names,
)
@settings(deadline=None)
def test_what_was_written_is_read_back(data: str, event: str | None, own_id: str | None) -> None:
    frame = write_event(data.encode(), event=event, id=own_id)
    assert read_all(frame) == [SseEvent(event or "message", data, own_id)]
    assert read_all(frame * 3) == [SseEvent(event or "message", data, own_id)] * 3


def test_an_event_cannot_be_changed() -> None:
    event = SseEvent("message", "x")
    with pytest.raises(AttributeError):
        event.data = "y"  # type: ignore[misc]
