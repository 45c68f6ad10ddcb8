"""What stands behind the endpoints, as one value."""

from msgspec import Struct

from carnet.assembly.agents import Agents
from carnet.core.address import Identities
from carnet.guards.admission import Gate
from carnet.guards.crowd import Crowd
from carnet.runtime.egress import EgressDoor
from carnet.runtime.journaled import Journaled
from carnet.runtime.keyring import Ring
from carnet.runtime.routing import Routing
from carnet.runtime.tasks import TaskWorker


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
