"""How the state of a turn changes in a statement: as `TRANSITIONS` says, and in no other way.

Law 1. Every statement that writes a state names, beside the turn, the states that it may have had.
Law 2. The state is compared so that no index of it is used: such an index names everything that is
       in that state.
"""

from carnet.core.chain.turn import BEGINNINGS, TRANSITIONS, TurnState


def becomes(after: TurnState) -> str:
    """What a statement sets for a turn that is moved to a state."""
    return f"state = '{after}'"


def may_become(*after: TurnState, turn: str = "turn") -> str:
    """The condition that a turn may be moved to any of these states from the one it has."""
    before = [state for state, next_ones in TRANSITIONS.items() if next_ones.issuperset(after)]
    listed = ", ".join(f"'{state}'" for state in before)
    return f"{turn}.state || '' IN ({listed})"


def moves(before: TurnState, after: TurnState, *, turn: str = "turn") -> str:
    """The condition that a turn has the one state from which it is moved to the other."""
    if after not in TRANSITIONS[before]:
        raise ValueError(f"no turn that is {before} becomes {after}")
    return f"{turn}.state || '' = '{before}'"


def begins(state: TurnState) -> TurnState:
    """The state in which a new turn may be written."""
    if state not in BEGINNINGS:
        raise ValueError(f"no turn begins as {state}")
    return state
