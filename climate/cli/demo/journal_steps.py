"""Last steps of each demo: the journal agrees with the rows, and has the history of the lease."""

from climate.cli.connection.session import Session
from climate.cli.demo.actors import Play, Unseen
from climate.cli.leases.lease import HISTORY_COLUMNS, history_rows
from climate.cli.operations.journal import direct_engine
from climate.cli.output import records


def journal_agrees(play: Play) -> str:
    """The journal and the rows agree"""
    from climate.service.journal import consistency_check

    with direct_engine(Session(play.stack.environ)) as climate:
        differences = list(consistency_check.differences(climate))
    if differences:
        raise Unseen(f"{len(differences)} differences: {differences[0]}")
    return "no difference"


def history_is_told(play: Play) -> str:
    """The history of the lease can be read"""
    entries = play.member.json("reservation", "GET", f"/leases/{play.lease['id']}/history")["history"]
    kinds = [entry["kind"] for entry in entries]
    if kinds[0] != "LeaseCreated" or kinds.count("EventFinished") < 2:
        raise Unseen(f"it tells of {', '.join(kinds)}")
    play.screen.say(records(history_rows(entries), "table", HISTORY_COLUMNS).rstrip())
    return f"{len(entries)} facts, from {kinds[0]} to {kinds[-1]}"
