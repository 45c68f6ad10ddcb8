"""As much of curl as the pages use, so that they can be typed where there is none.

A word that it does not know ends it: a page may not use what is not read here.
"""

import http.client
import sys
from argparse import ArgumentParser
from urllib.parse import urlsplit


def reading() -> ArgumentParser:
    """The command line: those options of curl, by their own names."""
    parser = ArgumentParser(prog="curl", allow_abbrev=False)
    parser.add_argument("url")
    parser.add_argument("-i", "--include", action="store_true", help="print the head as well")
    parser.add_argument("-s", "--silent", action="store_true", help="show no progress: never shown")
    parser.add_argument("-N", "--no-buffer", action="store_true", help="print what arrives at once")
    parser.add_argument("-X", "--request", dest="method", help="the method; else GET, or POST")
    parser.add_argument("-H", "--header", dest="headers", action="append", default=[])
    parser.add_argument("-d", "--data", dest="data", help="a body")
    return parser


def main(words: list[str]) -> int:
    """Send one request and print its answer; as curl, it ends well whatever the answer was."""
    send(words)
    return 0


def send(words: list[str]) -> int:
    """Send one request and print its answer; its status."""
    options = reading().parse_args(words)
    url = urlsplit(options.url)
    assert url.scheme == "http", options.url
    headers = dict(line.split(": ", 1) for line in options.headers)
    body = None if options.data is None else options.data.encode()
    if body is not None and "content-type" not in {name.lower() for name in headers}:
        headers["content-type"] = "application/x-www-form-urlencoded"
    target = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
    connection = http.client.HTTPConnection(url.netloc, timeout=60)
    connection.request(options.method or ("GET" if body is None else "POST"), target, body, headers)
    reply = connection.getresponse()
    out = sys.stdout.buffer
    if options.include:
        lines = [f"HTTP/1.1 {reply.status} {reply.reason}"]
        lines += [f"{name}: {value}" for name, value in reply.getheaders()]
        out.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    while data := reply.read1(65536):
        out.write(data)
        out.flush()
    connection.close()
    return reply.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
