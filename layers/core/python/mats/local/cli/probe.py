"""`mats probe`."""

from contextlib import closing
from typing import Annotated

import typer

from mats.bootstrap import open_system
from mats.domain.shortlist.fitness import Life
from mats.local.cli.output import AsJson, plain, print_result, readable, table_of


def probe(
    context: typer.Context,
    list_: Annotated[
        bool, typer.Option("--list", help="Show the endpoints that did not answer, and look at none.")
    ] = False,
    private: Annotated[
        bool, typer.Option("--private", help="Look at addresses of this machine and of private networks, too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look at the endpoints of all capabilities: a handshake or HEAD for each, never a call.

    An endpoint that was looked at in the last ten minutes is left in peace. One that misses is ranked behind living
    equals, and is dead after three rounds in a row over twenty minutes or more: run it from time to time.
    """
    with closing(open_system(context.obj, create=False)) as system:
        rounds = system.probe(private=private)
        if not list_:
            counts = dict(rounds())
            print_result(counts, readable(counts), as_json=as_json)
            return
        targets, proofs = rounds.targets(), rounds.book.load()
    unwell = sorted(
        (proof.life, proof.since, target.url, proof, ids)
        for target, ids in targets.items()
        if (proof := proofs.get(target)) and proof.life in (Life.MISSED, Life.DEAD)
    )
    found = [{"url": url, **proof._asdict(), "capabilities": ids} for *_, url, proof, ids in unwell]
    table = table_of("endpoint", "what it showed", "capabilities")
    for _, _, url, proof, ids in unwell:
        table.add_row(plain(url, "bold cyan"), plain(proof), plain("\n".join(ids)))
    print_result(found, table if unwell else "Every endpoint that was looked at answered.", as_json=as_json)
