"""A Starlette application whose calls go on with the chain of the request they are made for."""

import os

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import carnet

CRITIC = os.environ.get("CRITIC", "@critic@globex.example")


async def review(request: Request) -> JSONResponse:
    """Ask the critic, one hop deeper in the run that the request belongs to."""
    async with carnet.connect(CRITIC) as critic:
        text = await critic.chat((await request.json())["text"])
    return JSONResponse({"run": request.scope["carnet"].run, "text": text})


app = carnet.Middleware(Starlette(routes=[Route("/review", review, methods=["POST"])]))
