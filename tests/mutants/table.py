"""All mutants, by the table whose rows they are about."""

from tests.mutants.attacks import FAULTS, RESOURCES, SECURITY, SIGNATURES
from tests.mutants.cards import A2A
from tests.mutants.dialects import AGENTS_API, AGENTS_API_BODY, ENGINE, SAMVAD, TANGLE, TRAVEL
from tests.mutants.dialogues import DIALOGUE
from tests.mutants.identity import IDENTITY
from tests.mutants.mentions import MENTIONABLE, POLICIES
from tests.mutants.people import CONSOLE, MEMORY, PEOPLE

TABLES = {
    "tangle": TANGLE,
    "agents-api": (*AGENTS_API, *AGENTS_API_BODY),
    "samvad": SAMVAD,
    "travel": TRAVEL,
    "engine": ENGINE,
    "a2a": A2A,
    "mentionable": (*MENTIONABLE, *POLICIES, *IDENTITY),
    "signatures": SIGNATURES,
    "security": SECURITY,
    "resources": RESOURCES,
    "faults": FAULTS,
    "people": PEOPLE,
    "memory": MEMORY,
    "dialogue": DIALOGUE,
    "console": CONSOLE,
}
MUTANTS = [mutant for table in TABLES.values() for mutant in table]
