"""Headers that tell the chain and the payer, and turns that are repeated."""

import threading

from tests.exchanges.stage import Stage

RUN, TURN = "x-tangle-runid", "x-tangle-turnid"
PARENT, DEPTH = "x-tangle-parent-turnid", "x-tangle-forwarded-depth"
SPEAKER, FORWARDED = "x-tangle-speaker", "x-tangle-forwarded-authorization"
CHAT = "/v1/chat/completions"

AGENTS_API = (
    ("X-Agents-Api-Caller-Agent", "planner"),
    ("X-Agents-Api-Caller-User", "7"),
    ("X-Agents-Api-Caller-Host", "https://site.example"),
    ("X-Agents-Api-Chain-Depth", "2"),
    ("X-Agents-Api-Chain-Root", "root-1"),
)

MALFORMED: tuple[tuple[str, str], ...] = (
    (DEPTH, "three"),
    (DEPTH, "-1"),
    (DEPTH, "1.0"),
    (DEPTH, "+1"),
    (DEPTH, "99999999999999999999"),
    (RUN, "a b"),
    (RUN, "r" * 129),
    (TURN, "t" * 257),
    (PARENT, "caf\u00e9"),
    (SPEAKER, "s" * 129),
    (FORWARDED, "sk-without-a-scheme"),
    (FORWARDED, "Bearer a, Bearer b"),
    ("x-tangle-protocol-version", "2"),
    ("x_tangle_runid", "look-alike"),
    ("traceparent", "00-nonsense"),
)


def depths(stage: Stage) -> None:
    """Where a call stands."""
    for depth in range(6):
        stage.chat(
            f"a call at depth {depth}", "told", "x", (DEPTH, str(depth)), (RUN, f"deep-{depth}")
        )
    stage.chat("a call at the lower limit of an agent", "shallow", "x", (DEPTH, "2"))
    stage.chat("a call below the lower limit of an agent", "shallow", "x", (DEPTH, "1"))
    stage.chat("a stream that is too deep", "words", "x", (DEPTH, "4"), body={"stream": True})
    stage.chat("a chain that calls on until it may not", "onward", "onward onward onward onward")
    stage.chat(
        "the same from depth 2", "onward", "onward onward onward", (DEPTH, "2"), (RUN, "from-2")
    )
    stage.chat("an agent that comes back to itself", "strict", "strict x")
    stage.chat(
        "a call with all six headers",
        "told",
        "x",
        (RUN, "all-six"),
        (TURN, "turn-1"),
        (PARENT, "turn-0"),
        (DEPTH, "1"),
        (SPEAKER, "critic"),
    )
    stage.chat("blank headers are absent", "echo", "x", (RUN, ""), (TURN, ""), (DEPTH, " "))
    for name, value in MALFORMED:
        stage.chat(f"{name} is {value[:24]}", "echo", "x", (name, value))
    stage.chat("a depth twice", "echo", "x", (DEPTH, "1"), (DEPTH, "1"))
    stage.chat(
        "a trace",
        "told",
        "x",
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    )
    stage.chat("who calls by agents-api", "told", "x", *AGENTS_API)
    deeper = [(name, "17" if "Depth" in name else value) for name, value in AGENTS_API]
    stage.chat("too deep by agents-api", "told", "x", *deeper)
    lacking = [field for field in AGENTS_API if "Root" not in field[0]]
    stage.chat("agents-api without its root", "told", "x", *lacking)
    stage.chat(
        "agents-api with a depth that is a word",
        "told",
        "x",
        *[(name, "two" if "Depth" in name else value) for name, value in AGENTS_API],
    )
    stage.chat("two stamps that agree", "told", "x", *AGENTS_API, (DEPTH, "2"), (RUN, "root-1"))
    stage.chat("two stamps that do not agree", "told", "x", *AGENTS_API, (RUN, "root-2"))
    chain = {"mentionable": {"agent_chain": {"hop": 2, "max_hops": 4}}}
    stage.chat("a chain in the metadata", "told", "x", body={"metadata": chain})


def payers(stage: Stage) -> None:
    """Who pays."""
    roaming = f"Bearer {stage.scene.tokens['roaming']}"
    stage.chat("a credential from who may not send one", "paid", "x", (FORWARDED, roaming))
    stage.chat(
        "a credential of ours from who may", "paid", "x", (FORWARDED, roaming), token="forwarder"
    )
    stage.chat(
        "a credential of ours that may spend nothing",
        "paid",
        "x",
        (FORWARDED, f"Bearer {stage.scene.tokens['penniless']}"),
        token="forwarder",
    )
    stage.chat(
        "a credential of ours that was ended",
        "paid",
        "x",
        (FORWARDED, f"Bearer {stage.scene.tokens['ended']}"),
        token="forwarder",
    )
    stage.chat(
        "a credential that is not ours",
        "paid",
        "x",
        (FORWARDED, "Bearer sk-foreign"),
        token="forwarder",
    )
    stage.chat(
        "a credential from a peer that has credit",
        "paid",
        "x",
        (FORWARDED, "Bearer sk-foreign"),
        token="from-globex",
    )
    stage.chat("a peer that pays itself", "paid", "x", token="from-globex")
    stage.chat(
        "where the payer stands, from a peer",
        "told",
        "x",
        (FORWARDED, "Bearer sk-foreign"),
        token="from-globex",
    )


def repeats(stage: Stage) -> None:
    """The same turn again."""
    once = ((RUN, "again"), (TURN, "once"))
    stage.chat("a turn", "paid", "x", *once)
    stage.chat("the same turn again", "paid", "x", *once)
    stage.chat("the same turn as a stream", "paid", "x", *once, body={"stream": True})
    stage.chat("the same turn with another text", "paid", "y", *once)
    stage.chat("the same turn of another agent", "echo", "x", *once)
    stage.chat("the same turn from another parent", "paid", "x", *once, (PARENT, "other"))
    stage.chat("the same turn of another token", "paid", "x", *once, token="roaming")
    stage.chat("a turn that fails", "broken", "x", (RUN, "again"), (TURN, "fails"))
    stage.chat("a turn that failed, again", "broken", "x", (RUN, "again"), (TURN, "fails"))
    stage.chat("a turn that is refused for good", "onward", "nobody", (RUN, "again"), (TURN, "no"))
    streamed = ((RUN, "again"), (TURN, "streamed"))
    stage.chat("a streamed turn", "words", "one two", *streamed, body={"stream": True})
    stage.chat("a streamed turn again, whole", "words", "one two", *streamed)
    stage.chat(
        "a streamed turn again, streamed", "words", "one two", *streamed, body={"stream": True}
    )
    attached(stage)


def attached(stage: Stage) -> None:
    """A second caller of a turn that still runs gets the same answer, from its beginning."""
    ids = ((RUN, "again"), (TURN, "attached"))
    body = {"model": "gated", "messages": [{"role": "user", "content": "attach"}], "stream": True}
    request = stage.plain("POST", CHAT, *ids, body=body)
    first = threading.Thread(target=stage.quietly, args=(request,))
    first.start()
    stage.has_begun("attach")
    stage.open("attach")
    stage.send("a turn that somebody else has begun", request)
    first.join()
