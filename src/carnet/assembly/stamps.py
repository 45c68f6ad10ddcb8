"""From settings to the stamps that a gateway knows, and to how deep each is answered."""

from collections.abc import Sequence

from carnet.config import Settings
from carnet.core.chain.carnet import DepthLimits
from carnet.wire.stamps import ROWS
from carnet.wire.stamps.stamp import Stamp, Stamps


def known_stamps(settings: Settings, rows: Sequence[Stamp] = ROWS) -> Stamps:
    """The stamps, each with the last depth that is answered as it is configured."""
    gateway, hard = settings.gateway, settings.gateway.hard_max_depth
    return Stamps(
        rows,
        configured={
            "tangle": gateway.max_depth - 1,
            "caller_context": gateway.max_chain_depth,
            "mentionable": gateway.max_hops,
        },
        default=gateway.max_depth - 1,
        # It is exclusive, as `max_depth` is.
        hard=None if hard is None else hard - 1,
        certificate=gateway.certificate_header,
    )


def depth_limits(settings: Settings) -> DepthLimits:
    """The last depth that is answered, by the stamp that tells the chain."""
    return known_stamps(settings).limits
