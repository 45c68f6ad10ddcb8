"""Turns that have ended, added up: bounded labels, and every amount once."""

from typing import Any

from carnet.core.chain.carnet import Carnet
from carnet.core.chain.turn import Turn
from carnet.core.people.identity import Account
from carnet.runtime.traces.ends import MOST_PEERS, OTHER, Ends
from carnet.telemetry import Metrics


def ended(ends: Ends, agent: str, **more: Any) -> None:
    given: dict[str, Any] = {"n": 1, "agent": agent, "run": "r", "turn": "t", "created": 0}
    given |= {"payer": Account("acme.example", "ann"), "state": "done", "ended": 2_000_000}
    turn = Turn(**given | more)
    ends.ended += ((Carnet(run=turn.run, turn=turn.turn), turn, ()),)


def text_of(ends: Ends) -> str:
    metrics = Metrics()
    metrics.tallies.look = ends.tallies
    return metrics.text().decode()


def test_amounts_tokens_and_time_are_counted_by_agent_and_by_peer() -> None:
    ends = Ends(domain="acme.example", exporter=None)
    ended(ends, "front", cost=30_000, tokens_in=5, tokens_out=7)
    ended(ends, "helper", cost=10_000, actor="agent:front", tokens_in=1)
    ended(ends, "@far@globex.example", cost=20_000, actor="agent:front", tokens_out=9)
    text = text_of(ends)
    assert 'carnet_cost_total{agent="front"} 0.03' in text
    assert 'carnet_cost_total{agent="helper"}' not in text  # it is in what its caller was charged
    assert 'carnet_tokens_total{agent="helper",direction="in"} 1.0' in text
    assert 'carnet_turn_seconds_total{agent="front"} 2.0' in text
    assert 'carnet_peer_cost_total{peer="globex.example"} 0.02' in text
    assert 'carnet_peer_tokens_total{direction="out",peer="globex.example"} 9.0' in text or (
        'carnet_peer_tokens_total{peer="globex.example",direction="out"} 9.0' in text
    )
    assert 'carnet_peer_calls_total{peer="globex.example",state="done"} 1.0' in text
    assert "carnet_spans" not in text


def test_a_turn_that_waits_is_counted_when_it_has_ended() -> None:
    ends = Ends(domain="acme.example", exporter=None)
    ended(ends, "front", cost=10_000, state="waiting")
    assert "carnet_cost_total{" not in text_of(ends)
    ended(ends, "front", cost=30_000)
    assert 'carnet_cost_total{agent="front"} 0.03' in text_of(ends)


def test_there_are_so_many_peers_and_one_for_all_others() -> None:
    ends = Ends(domain="acme.example", exporter=None)
    for number in range(MOST_PEERS + 50):
        ended(ends, f"@far@d{number}.example")
    lines = [line for line in text_of(ends).splitlines() if "carnet_peer_calls_total{" in line]
    assert len(lines) == MOST_PEERS + 1
    assert f'carnet_peer_calls_total{{peer="{OTHER}",state="done"}} 50.0' in lines
