"""The caller that does its worst, as a process of its own.

    python -m tests.worst.attacker PORT SECONDS ATTACKS CALLBACK...

Its token comes on the standard input. It says `begun` when it has prepared its runs, and what came
of its requests as JSON when it has ended.
"""

import asyncio
import json
import sys

import uvloop

from tests.worst.attacks import ATTACKS, Tenant, go_on, prepare


async def attack(tenant: Tenant, seconds: float, names: list[str]) -> None:
    await prepare(tenant)
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    working = [
        asyncio.create_task(go_on(tenant, name))
        for name in names
        for _ in range(ATTACKS[name].at_once)
    ]
    ended, _ = await asyncio.wait(working, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for one in working:
        one.cancel()
    await asyncio.gather(*working, return_exceptions=True)
    for one in ended:
        one.result()  # an attacker that gave up is a fault of this file


def main() -> None:
    port, seconds, names, *callbacks = sys.argv[1:]
    tenant = Tenant(int(port), sys.stdin.readline().strip(), callbacks)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(attack(tenant, float(seconds), names.split(",")))
    sys.stdout.write(json.dumps(dict(sorted(tenant.seen.items()))) + "\n")


if __name__ == "__main__":
    main()
