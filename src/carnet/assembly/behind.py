"""What stands behind the endpoints, as one value."""

from msgspec import Struct

from carnet.assembly.agents.agents import Agents
from carnet.core.people.address import Identities
from carnet.guards.admission.gate import Gate
from carnet.guards.limits.concurrency import Crowd
from carnet.runtime.egress.client import EgressDoor
from carnet.runtime.peers.keyring import Ring
from carnet.runtime.tasks.worker import TaskWorker
from carnet.runtime.turns.runner import Journaled
from carnet.runtime.visit.routing import Routing


class Behind(Struct, frozen=True, kw_only=True, eq=False):
    """What stands behind the endpoints: the gate and the agents."""

    gate: Gate
    crowd: Crowd
    router: Routing
    identities: Identities
    journal: Journaled
    worker: TaskWorker
    door: EgressDoor
    ring: Ring
    agents: Agents
