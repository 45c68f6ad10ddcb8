"""The command line of an operator whose gateways share a database."""

import asyncio
import json

import asyncpg

from tests.replicas.scene import Callers, House, Replica


def findings(page: dict[str, list[dict[str, str]]]) -> dict[str, dict[str, str]]:
    return {check["what"]: check for check in page["checks"]}


async def test_doctor_counts_the_gateways_and_warns_of_nothing(
    house: House, four: list[Replica]
) -> None:
    # Whether the one that wrote last where it listens runs still is of no interest here.
    ran = house.operator.carnet("--format", "json", "doctor", env={"CARNET__GATEWAY__PORT": "0"})
    page = json.loads(ran.stdout)
    assert {check["status"] for check in page["checks"]} == {"ok"}, page
    found = findings(page)
    assert found["lock"]["message"] == f"{len(four)} gateways use the store."
    assert found["store"]["message"] == f"{house.database} can be written."


async def test_doctor_finds_a_database_that_cannot_be_written(house: House) -> None:
    outside = await asyncpg.connect(house.database)
    try:
        async with outside.transaction():
            await outside.execute("LOCK TABLE meta IN SHARE MODE")
            done = await asyncio.to_thread(house.operator.try_carnet, "doctor")
    finally:
        await outside.close()
    assert done.returncode == 2
    assert f"{house.database} cannot be written" in done.stdout
    assert "docs/operations/postgresql.md" in done.stdout


async def test_a_run_of_any_gateway_is_shown_and_cancelled(
    house: House, four: list[Replica], people: Callers
) -> None:
    (late,) = house.open(1)  # the operator asks the one that wrote last where it listens
    try:
        for number, replica in enumerate(four[:2]):
            run = f"conv_operator_{number}"
            house.allow(run, "0")
            async with people.reading(replica, run) as reader:
                await reader.until(b'"0 "')
                page = await asyncio.to_thread(house.operator.json, "run", "show", run)
                assert page["turns"][0]["state"] == "running"
                outcome = await asyncio.to_thread(house.operator.json, "run", "cancel", run)
                assert outcome["cancelled"] == 1
                assert b"cancelled" in await reader.rest()
    finally:
        house.replicas.remove(late)
        assert late.stop() == 0
