"""Several organisations that know one another as peers."""

from pathlib import Path

from tests.faults.stores import move_to
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG


def organisation(folder: Path, domain: str, database: str = "") -> Organisation:
    """An organisation with the usual test agents, not yet started; on SQLite if none is given."""
    folder.mkdir(parents=True, exist_ok=True)
    gateway = Organisation(folder, domain)
    if database:
        move_to(gateway, database)
    gateway.configure(CONFIG, agents=AGENTS)
    return gateway


def introduce(
    caller: Organisation,
    callee: Organisation,
    *,
    url: str | None = None,
    credit: str = "10",
    forwarding: bool = True,
) -> None:
    """Let `caller` call `callee`: a token there, a peer here; both list the other."""
    option = ["--may-forward-authorization"] if forwarding else []
    token = callee.new_token(f"from-{caller.domain}", "--peer", caller.domain, *option)
    callee.carnet("peers", "add", caller.domain, "--url", caller.url, "--credit", credit, *option)
    secret = caller.folder / "var" / f"{callee.domain}.token"
    secret.write_text(token)
    secret.chmod(0o600)
    caller.carnet(
        "peers",
        "add",
        callee.domain,
        "--url",
        url or callee.url,
        "--token-file",
        str(secret),
        "--credit",
        credit,
        *option,
    )
