"""A FastAPI application whose calls go on with the chain of the request they are made for."""

import os
from typing import Annotated

from fastapi import Body, FastAPI, Request

import carnet

CRITIC = os.environ.get("CRITIC", "@critic@globex.example")

app = FastAPI()
app.add_middleware(carnet.Middleware, timeout=60)


@app.post("/review")
async def review(request: Request, text: Annotated[str, Body(embed=True)]) -> dict[str, str]:
    """Ask the critic, one hop deeper in the run that the request belongs to."""
    async with carnet.connect(CRITIC) as critic:
        return {"run": request.scope["carnet"].run, "text": await critic.chat(text)}
