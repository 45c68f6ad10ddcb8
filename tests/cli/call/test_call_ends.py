"""What `carnet call` says of an answer that its text does not show: that it was cut short."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.cli.conftest import Cli


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("end", "says"), [("length", "cut short (length)"), ("stop", "")])
def test_an_answer_that_was_cut_short_is_told_as_one(cli: Cli, end: str, says: str) -> None:
    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            message = {"role": "assistant", "content": "And then"}
            whole = {"choices": [{"index": 0, "message": message, "finish_reason": end}]}
            chunk = {"choices": [{"index": 0, "delta": message, "finish_reason": end}]}
            stream = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
            body = (stream if asked["stream"] else json.dumps(whole)).encode()
            media = "text/event-stream" if asked["stream"] else "application/json"
            self.send_response(200)
            self.send_header("content-type", media)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        words = ("call", f"http://127.0.0.1:{server.server_port}", "x", "--dialect", "openai")
        answers = [cli(*words), cli(*words, "--stream")]
        server.shutdown()
    for ran in answers:
        assert ran.out.strip() == "And then"
        assert says in ran.err
        assert ("cut short" in ran.err) is bool(says)
