"""Which of the interfaces of a card is called."""

from carnet.wire.dialects.a2a.card import A2aCard, CardInterface
from carnet.wire.dialects.a2a.client import HTTP_JSON, JSON_RPC, Interface, interfaces_of


def card(*interfaces: tuple[str, str]) -> A2aCard:
    found = [
        CardInterface(url=f"https://x.example/{place}", binding=binding, version=version)
        for place, (binding, version) in enumerate(interfaces)
    ]
    return A2aCard(name="a", description="", version="1", interfaces=tuple(found))


def chosen(*interfaces: tuple[str, str]) -> list[str]:
    return [each.url[-1] for each in interfaces_of(card(*interfaces))]


def test_the_order_of_the_card_counts_among_equals() -> None:
    assert chosen((HTTP_JSON, "1.0"), (JSON_RPC, "1.0")) == ["0", "1"]


def test_the_present_version_comes_before_the_former() -> None:
    former = [(HTTP_JSON, "0.3"), (JSON_RPC, "0.3")]
    assert chosen(*former, (JSON_RPC, "1.0")) == ["2", "1", "0"]


def test_what_is_not_spoken_is_left_out() -> None:
    others = [("GRPC", "1.0"), (JSON_RPC, "2.0"), (JSON_RPC, "0.2"), ("https://x/ws", "1.0")]
    assert chosen(*others) == []


def test_an_interface_keeps_its_tenant() -> None:
    tenant = CardInterface(url="https://x", binding=JSON_RPC, version="1.0", tenant="t")
    found = A2aCard(name="a", description="", version="1", interfaces=(tenant,))
    assert interfaces_of(found) == (Interface(url="https://x", tenant="t"),)
