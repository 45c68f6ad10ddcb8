"""Acme issues vouchers, Globex takes them; Stark is a peer of Globex whose key a test holds."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from carnet.core.voucher import Voucher
from carnet.runtime.client.key import ClientKey
from carnet.runtime.system import SystemClock, SystemIds
from carnet.wire import travel
from carnet.wire.travel.voucher import write_voucher
from tests.faults.stores import number, rows
from tests.interop.conftest import Databases
from tests.interop.interrupts.scene import ASKS
from tests.support.federation import introduce, organisation
from tests.support.http import Reply, request
from tests.support.organisation import Organisation

PRICE = "0.0002"
LONG = '''

async def wordy(visit: carnet.Visit) -> str:
    """Use as many tokens as it is told to."""
    note(visit)
    visit.usage(tokens_in=1, tokens_out=int(visit.text))
    return "so much"


async def shopping(visit: carnet.Visit) -> str:
    """Ask an agent that costs something, as often as it is told to."""
    note(visit)
    return " ".join([await visit.peer("paid").ask("x") for _ in range(int(visit.text))])
'''
VERIFIER = '''

def verify(payment, call):
    """A settlement of somebody else's, as far as Carnet sees it."""
    kind, _, rest = payment.removeprefix("x402:").removeprefix("acct-").partition("-")
    if kind == "raise":
        raise RuntimeError(f"the facilitator says no to {payment}")
    if kind == "late":
        import time
        time.sleep(30)
    if kind == "why":
        return f"no funds behind {payment}"
    if kind == "odd":
        return {"account": "a b", "limit": "much"}
    if kind == "id":
        account, _, id = rest.partition("-")
        return {"account": account, "limit": "1", "id": id}
    if payment.startswith("acct-"):
        return {"account": rest, "limit": "0.0005"}
    return {"account": "0xab12", "limit": "1", "id": payment[-16:]}
'''
CONFIG = """
[payers."voucher_"]
verifier = "voucher"

[payers."x402:"]
target = "agents:verify"
seconds = 3

[payers."acct-"]
target = "agents:verify"
issuer = "accounts"

[agents.wordy]
target = "agents:wordy"
price_out = "1"
trust = "public"

[agents.shopping]
target = "agents:shopping"
trust = "public"

[agents.seller]
target = "agents:seller"
trust = "public"
price = "0.0002"

[agents.open]
target = "agents:echo"
trust = "public"
price = "0.0002"
"""


class Payers(NamedTuple):
    """Two organisations, and the key of a third."""

    acme: Organisation
    globex: Organisation
    stark: ClientKey

    def issue(self, amount: str = "1", *options: str, audience: str = "globex.example") -> str:
        """A voucher of Acme's, by its command."""
        made = self.acme.json("vouchers", "issue", audience, amount, *options)
        return str(made["voucher"])

    def forge(self, **changes: Any) -> str:
        """A voucher of Stark's, as the test wants it."""
        now = SystemClock().wall_us() // 1_000_000
        usual = {
            "issuer": "stark.example",
            "id": SystemIds().uuid(),
            "audience": "globex.example",
            "account": "pepper",
            "amount": 1_000_000,
            "currency": "credits",
            "issued": now - 10,
            "expires": now + 600,
        }
        made = Voucher(**{**usual, **changes})
        return write_voucher(made, kid=self.stark.kid, sign=self.stark.sign).reveal()

    def pay(self, voucher: str, agent: str = "paid", text: str = "hello", **more: Any) -> Reply:
        """Ask Globex for something that costs, and bring a voucher."""
        headers = [("carnet-payment", voucher), *more.pop("headers", ())]
        return self.globex.chat(text, agent, headers=headers, **more)

    def billed(self, run: str) -> list[tuple[str, str, str, int]]:
        """Whom Globex has debited for a run, in whose favour, and how much."""
        sql = "SELECT issuer, account, credit, amount FROM ledger WHERE run = ? ORDER BY n"
        return [tuple(row) for row in rows(self.globex, sql, run)]

    def ran(self, run: str) -> int:
        """How many turns of a run Globex has recorded."""
        return number(
            self.globex,
            "SELECT COUNT(*) FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ?",
            run,
        )


def tells_revoked(gateway: Organisation, id: str) -> bool:
    """Whether a gateway tells others that it has revoked a voucher."""
    page = request("GET", f"{gateway.url}/.well-known/carnet-ended.json")
    return page.status == 200 and id in travel.read_ended(page.body).ids


@pytest.fixture(scope="module")
def payers(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Payers]:
    folder = tmp_path_factory.mktemp("payers")
    acme, globex = [
        organisation(folder / name, f"{name}.example", database()) for name in ("acme", "globex")
    ]
    agents = (globex.folder / "agents.py").read_text()
    globex.configure(CONFIG, agents=agents + ASKS + LONG + VERIFIER)
    introduce(acme, globex, credit="100")
    stark = ClientKey(bytes(range(32)))
    globex.carnet("peers", "add", "stark.example", "--url", "http://127.0.0.1:9", "--credit", "100")
    globex.carnet(
        *("peers", "add", "agent://stark.example", "--key", stark.public_text),
        *("--kid", stark.kid),
    )
    for each in (acme, globex):
        each.start()
    yield Payers(acme, globex, stark)
    for each in (acme, globex):
        each.stop()
