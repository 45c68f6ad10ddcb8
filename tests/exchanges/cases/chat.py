"""Chat completions: whole and streamed, skills, models listed, and every input that is refused."""

from typing import Any

from tests.exchanges.stage import Stage

CHAT = "/v1/chat/completions"
STREAM: dict[str, Any] = {"stream": True}
USAGE: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
ONE: dict[str, Any] = {"role": "user", "content": "hi"}

# What is wrong with it, and the body.
BAD_BODIES: tuple[tuple[str, bytes], ...] = (
    ("nothing", b""),
    ("no JSON", b"{"),
    ("a list", b"[]"),
    ("a member twice", b'{"model":"echo","model":"words","messages":[]}'),
    ("NaN", b'{"messages":[{"role":"user","content":"hi"}],"temperature":NaN}'),
    ("a lone surrogate", b'{"messages":[{"role":"user","content":"\\ud800"}]}'),
    ("bytes that are not UTF-8", b'{"messages":[{"role":"user","content":"\xff"}]}'),
    ("nested too deep", b'{"messages":' + b"[" * 200 + b"]" * 200 + b"}"),
    ("an integer too large", b'{"messages":[],"n":99999999999999999999999}'),
    ("something behind it", b'{"messages":[{"role":"user","content":"hi"}]} {}'),
)

BAD_ASKS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("no messages", {"model": "echo"}),
    ("messages that are no list", {"model": "echo", "messages": "hi"}),
    ("no message", {"model": "echo", "messages": []}),
    ("a message that is no object", {"model": "echo", "messages": ["hi"]}),
    ("a role that is not known", {"model": "echo", "messages": [{"role": "king", "content": "x"}]}),
    ("a content that is a number", {"model": "echo", "messages": [{"role": "user", "content": 7}]}),
    ("a model that is a number", {"model": 7, "messages": [ONE]}),
    ("a stream that is a word", {"model": "echo", "messages": [ONE], "stream": "yes"}),
    ("two answers", {"model": "echo", "messages": [ONE], "n": 2}),
    ("stream options that are a word", {"messages": [ONE], "stream": True, "stream_options": "x"}),
    ("a skill that is empty", {"model": "clerk", "messages": [ONE], "carnet": {"skill": ""}}),
    ("a carnet that is a word", {"model": "clerk", "messages": [ONE], "carnet": "add"}),
    ("a payload that is a number", {"messages": [ONE], "carnet": {"skill": "add", "payload": 3}}),
    ("a member of carnet too many", {"messages": [ONE], "carnet": {"skill": "add", "more": 1}}),
)

BAD_ADDRESSES = (
    "nobody",
    "@echo",
    "@@acme.example",
    "@echo@nowhere.example",
    "agent://",
    "agent://Upper.example",
    "agent://nowhere.example",
    "echo\u00e9",
)


def answers(stage: Stage) -> None:
    """Asked and answered."""
    stage.chat("a chat", "echo")
    stage.chat("a chat without a model", None)
    stage.chat("a chat at the path of an agent", "ignored", path=f"/agents/words{CHAT}")
    stage.chat("a chat at a path with a slash in its name", None, path=f"/agents/a%2Fb{CHAT}")
    stage.chat("our own agent by its address", "@words@acme.example", "one two")
    stage.chat("our default agent by its identity", "agent://acme.example")
    stage.chat("our agent by its identity", "agent://words.acme.example", "one two")
    stage.chat("a stream", "words", "one two three", body=STREAM)
    stage.chat("a stream with its usage", "words", "one two", body=USAGE)
    stage.chat("a stream of nothing", "words", "", body=STREAM)
    stage.chat("text of many tongues", "echo", "grüße, 世界 \U0001f30d\u2028 </script> \u0000")
    several = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "one", "name": "alice"},
        {"role": "assistant", "content": "two"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "three"}, {"type": "text", "text": "!"}],
        },
    ]
    stage.post("several messages", CHAT, {"model": "echo", "messages": several})
    stage.post(
        "parameters of a model that an agent has no use for",
        CHAT,
        {"model": "echo", "messages": [ONE], "temperature": 0.5, "max_tokens": 9, "x-own": [1]},
    )
    stage.chat("an agent that fails", "broken")
    stage.chat("an agent that fails, streamed", "broken", body=STREAM)
    stage.chat("an agent that fails half way", "half")
    stage.chat("an agent that fails half way, streamed", "half", body=STREAM)
    stage.chat("an agent with a price", "paid")
    stage.chat("an agent with a price, streamed with its usage", "paid", body=USAGE)
    stage.chat("an agent that fails after it has spent", "spends")
    stage.chat("an agent that calls twice", "twice")
    stage.chat("an agent that pays itself", "own_pocket", "paid")
    stage.chat("an agent that is told where it stands", "told")


def skills(stage: Stage) -> None:
    """Skills beside the messages of a chat."""

    def asked(title: str, skill: str, payload: Any, model: str = "clerk", **more: Any) -> None:
        stage.chat(title, model, body={"carnet": {"skill": skill, "payload": payload}, **more})

    asked("a skill", "add", {"a": 2, "b": 3})
    asked("a skill, streamed", "add", {"a": 2, "b": 3}, stream=True)
    asked("a skill that yields numbers, streamed", "count", {"to": 3}, stream=True)
    asked("a skill that yields text and a result", "recite", {"lines": ["a", "b"]}, **USAGE)
    asked("a skill with a default", "note", {"text": "x"})
    asked("a skill for tokens", "whoami", {})
    asked("a skill for peers, asked by a token", "secret", {})
    asked("a skill that gives what it may not", "wrong", {})
    asked("a skill for tasks, asked at once", "report", {"gate": "never"})
    asked("a skill that is not there", "ad", {})
    asked("a payload of the wrong type", "add", {"a": "x", "b": 3})
    asked("a payload that lacks a field", "add", {"a": 1})
    asked("a text that is too long", "note", {"text": "far too long for it"})
    asked("a number that is too large", "note", {"text": "x", "stars": 6})
    asked("a skill of an agent that has none", "add", {}, model="echo")
    stage.chat("talking to an agent of skills that talks too", "clerk")
    stage.chat("talking to an agent that has skills alone", "solo")


def refused(stage: Stage) -> None:
    """Bodies and addresses that are refused before anything is run."""
    for title, body in BAD_BODIES:
        stage.post(f"a body that is {title}", CHAT, body)
    for title, asked in BAD_ASKS:
        stage.post(f"a request with {title}", CHAT, asked)
    for address in BAD_ADDRESSES:
        stage.chat(f"the address {address}", address)
    stage.chat("an agent at a path that is not there", None, path=f"/agents/nobody{CHAT}")
    stage.chat("a path that is not ASCII", None, path=f"/agents/%C3%A9{CHAT}")
    ask = {"model": "echo", "messages": [ONE]}
    stage.post("a body of another type", CHAT, ask, ("content-type", "text/plain"))
    stage.post(
        "a body of another charset",
        CHAT,
        ask,
        ("content-type", "application/json; charset=latin-1"),
    )
    stage.post(
        "a body with its charset", CHAT, ask, ("content-type", 'application/json; charset="UTF-8"')
    )
    stage.post("a body that is compressed", CHAT, ask, ("content-encoding", "gzip"))
    long = {"model": "echo", "messages": [{"role": "user", "content": "x" * 140_000}]}
    big = stage.plain("POST", CHAT, ("content-length", "140064"), body=b"")
    del long
    stage.send("a body that is too large by its length", big)


def tokens(stage: Stage) -> None:
    """Who may ask, and for what."""
    stage.chat("no token", "echo", token=None)
    for title, value in (
        ("a token that is not known", "Bearer carnet_nobody"),
        ("a token that is no bearer", "Basic YTpi"),
        ("a token of nothing", "Bearer "),
        ("two words", "Bearer a b"),
    ):
        stage.chat(title, "echo", "hi", ("authorization", value))
    token = stage.scene.tokens["acme"]
    twice = (("authorization", f"Bearer {token}"), ("authorization", f"Bearer {token}"))
    stage.chat("a token twice", "echo", "hi", *twice)
    stage.chat("a token that was ended", "echo", token="ended")
    stage.chat("a token for one agent", "echo", token="bare")
    stage.chat("a token for another agent", "words", token="bare")
    stage.chat("a token that may not call at all", "echo", token="reader")
    stage.chat("a token that may not call others", "@echo@globex.example", token="bare")
    stage.chat("a token that may spend a little", "paid", token="poor")
    stage.chat("the same, when it is spent", "paid", token="poor")
    stage.chat("a token that may spend nothing", "paid", token="penniless")
    stage.chat("a token that may not spend, where nothing is asked", "echo", token="penniless")
    stage.chat("the first call of a token with a rate", "echo", token="rated")
    stage.chat("the second", "echo", token="rated")
    stage.chat("one more than its rate", "echo", token="rated")
    guess = ("x-forwarded-for", "192.0.2.7")
    wrong = stage.plain("GET", "/v1/models", guess, ("authorization", "Bearer wrong"))
    for _ in range(30):
        stage.quietly(wrong)
    stage.send("one wrong token too many from an address", wrong)
    stage.send(
        "the same address without a token", stage.plain("GET", "/healthz", guess, token=None)
    )
