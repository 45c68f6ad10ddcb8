"""A front of its own before an agent loop: it knows the contract, and nothing of Carnet.

    python plain_front.py URL TOKEN TEXT

It asks what a gateway would ask, prints what the loop says, and on standard error what it does.
"""

import json
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen


def ask(url, token, text):
    """The events of an answer, as they come."""
    body = {
        "messages": [{"role": "user", "content": text}],
        "metadata": {"correlation_id": "front_1", "trigger": "message"},
    }
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = Request(f"{url}/engine/chat", json.dumps(body).encode(), headers)  # noqa: S310  given
    with urlopen(request, timeout=60) as stream:  # noqa: S310  the URL is given by its user
        name = ""
        for line in stream:
            word, _, value = line.decode().rstrip("\n").partition(": ")
            if word == "event":
                name = value
            elif word == "data":
                yield name, json.loads(value)


if __name__ == "__main__":
    if not sys.argv[3:]:
        sys.exit(__doc__)
    try:
        for event, data in ask(*sys.argv[1:]):
            if event == "text-delta":
                print(data["content"], end="", flush=True)
            else:
                print(event, json.dumps(data), file=sys.stderr)
            if event == "error":
                sys.exit(1)
    except HTTPError as refused:
        sys.exit(f"{refused.code} {refused.read().decode()}")
