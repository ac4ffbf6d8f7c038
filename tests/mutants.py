"""Mutants of orderings, defences, stores and templates: `python -m tests.mutants` plants each and runs its tests.

Each is planted alone, in a copy of the tree. Those of the core meet first the unit tests that import the mutated
module, and those of the whole pipeline, then those of all policies; those of stores and templates the suites of SUITES,
which need the servers and the CDK of `make test-servers`. Exit code 1 if any survives.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CODE = Path("layers/core/python/mats")
_COPIED = (
    "layers", "functions", "infra", "experiments", "tests", "examples", "console", "docs", "requirements", "app.py",
    "cdk.json", "pyproject.toml",
)  # fmt: skip
_PIPELINE = ("tests/unit/usecases/test_discover.py", "tests/unit/usecases/test_discover_parts.py")
_WIDE = ("tests/unit/policies",)


class Mutant(NamedTuple):
    """A fault: in a file below `mats`, or of `infra`, the one place where `before` stands has `after`.

    `also` are tests of its own.
    """

    file: str
    before: str
    after: str
    also: str = ""


_BLEND, _SCALE, _SHORTLIST = "domain/search/blend.py", "domain/search/scale.py", "domain/search/shortlist.py"
_EXACT, _HOLDS, _RATED = "domain/policies/exact.py", "domain/policies/holds.py", "domain/policies/rated.py"
_DUPLICATES, _SENIORITY = "domain/policies/duplicates.py", "domain/policies/seniority.py"
_CLAIMS = "domain/policies/claims.py"

MUTANTS = (
    Mutant(_BLEND, "return reranked and Signal.LLM not in result.signals, ", "return False, "),
    Mutant(_BLEND, "for result in reranked or ranked)", "for result in ranked)"),
    Mutant(_BLEND, "-result.score, deprecated, result.id", "-result.score, False, result.id"),
    Mutant(_BLEND, "scoring = scoring if opinion.scores else scoring.without_reranker()", "pass"),
    Mutant(_BLEND, "else least + (1 - least) * value", "else value"),
    Mutant(_BLEND, "pairs, candidate.shift))\n", "pairs, candidate.shift + candidate.gain))\n"),
    Mutant("domain/search/signals.py", "0.0 if type_tags or inferred in tuple(Kind) else", "0.0 if type_tags else"),
    Mutant("domain/search/signals.py", "Signal.RETRIEVAL if signal is Signal.LLM else signal", "signal"),
    Mutant(_SCALE, "LEXICAL_SHARE = 0.6", "LEXICAL_SHARE = 0.4"),
    Mutant(_SCALE, "key=lambda id: (-scores[id], id)", "key=lambda id: -scores[id]"),
    Mutant(_SCALE, "pairs_share: float = 0.4", "pairs_share: float = 0.0"),
    Mutant("domain/search/verdict.py", "return usual if understood else", "return usual if True else"),
    Mutant("domain/text/words.py", "len(letters) < _TORN * len(spoken)", "len(letters) < 9 * len(spoken)"),
    Mutant("usecases/found.py", "each.bm25 is None or each.bm25 for", "each.bm25 for"),
    Mutant(_SHORTLIST, "each.exact or (each.quoted and not each.new) for", "each.exact and each.quoted for"),
    Mutant(_SHORTLIST, "lists = sorted(filter(None, lists), key=lambda each: order.index(each[0]))", "pass"),
    Mutant(_SHORTLIST, "kept = list(results[:_NEAREST])", "kept = []"),
    Mutant(_SHORTLIST, "_BESIDE = 0.06", "_BESIDE = 0.0"),
    Mutant(_SHORTLIST, "return min((each for each in best", "return max((each for each in best"),
    Mutant("domain/search/lookups.py", "_GUESSED = 0.7", "_GUESSED = 1.0"),
    Mutant("usecases/found.py", "_ABOUT_AS_RELEVANT = 0.9", "_ABOUT_AS_RELEVANT = 0.6"),
    Mutant(_EXACT, "trust = 100 if kind is Exactness.ID else profile", "trust = profile"),
    Mutant(_EXACT, "_MOST = 5", "_MOST = 50"),
    Mutant(_EXACT, "is not Exactness.ID, -profile.trust_or(self.unrated)", "is not Exactness.ID, 0"),
    Mutant(_EXACT, "replace(each, least=NAMED) if each.marks.exact else each", "each"),
    Mutant("domain/policies/lessons.py", "relevance=max(each.relevance, least)", "relevance=each.relevance"),
    Mutant(_HOLDS, "grade(order[n]) >= own", "grade(order[n]) > own"),
    Mutant(_HOLDS, "order.insert(equals[-1]", "order.insert(equals[0]"),
    Mutant(_RATED, "_AS_NEAR, _MOST_AS_NEAR = 0.9, 4", "_AS_NEAR, _MOST_AS_NEAR = 0.9, 40"),
    Mutant(_RATED, "_PLACES = 3", "_PLACES = 1"),
    Mutant(_RATED, "if cosine and not evidence.foreign:", "if cosine:"),
    Mutant(_DUPLICATES, "MOST_KEPT = 3", "MOST_KEPT = 5"),
    Mutant(_DUPLICATES, "MOST_OF_A_DAY = 5", "MOST_OF_A_DAY = 50"),
    Mutant(_DUPLICATES, "SHARE = 0.8", "SHARE = 1.0"),
    Mutant(_DUPLICATES, "(echoes - set(first_echoes) - exact)", "(echoes - set(first_echoes))"),
    Mutant(_DUPLICATES, "(-each.trust_or(unrated), position", "(0, position"),
    Mutant(_DUPLICATES, "if peers and all(", "if False and all("),
    Mutant(_RATED, "if not best or best[0] in ids[: order.k]:", "if not best:"),
    Mutant(_SENIORITY, "NEW_SHARE = 0.2", "NEW_SHARE = 0.5"),
    Mutant(_SENIORITY, "_MOST = 0.5", "_MOST = 0.7"),
    Mutant(_SENIORITY, "if ages.most_are_new:", "if not ages:"),
    Mutant(_SENIORITY, "and each.rated_since > each.first_registered]", "]"),
    Mutant(_SENIORITY, "return marks.new and not", "return not"),
    Mutant(_SENIORITY, "or candidate.marks.elsewhere or result.relevance < ranked.thresholds.weak:", ":"),
    Mutant(_SENIORITY, "_AS_RELEVANT = 0.6", "_AS_RELEVANT = 0.5"),
    Mutant(_SENIORITY, "marks.new and not marks.exact and", "marks.new and"),
    Mutant("usecases/enrich.py", "if before and before.is_rated else cause.time", "if before else cause.time",
           also="tests/unit/usecases/test_enrich.py"),
    Mutant(_SENIORITY, "ranked if ranked.reranked else self._lead", "self._lead"),
    Mutant(_SENIORITY, " or any(profile.first_registered > review for review in reviews)", ""),
    Mutant(_SENIORITY, "oldest_s + DAY_S", "oldest_s"),
    Mutant(_CLAIMS, "original.registered_s > DAY_S", "original.registered_s > 10.0"),
    Mutant(_CLAIMS, "        return trust > other\n", "        pass\n"),
    Mutant(_CLAIMS, "COPY = 0.75", "COPY = 0.95"),
    Mutant(_CLAIMS, "_COPIED = 60", "_COPIED = 600"),
    Mutant(_CLAIMS, "copied.get(each.id, ()) if each.id in active else each.marks.near", "each.marks.near"),
    Mutant(_CLAIMS, "for rule in rules[:count])", "for rule in rules[len(rules) - count :])"),
    Mutant("domain/policies/memory.py", "evidence.votes.within_reach(order.ids, order.k)", "evidence.votes"),
    Mutant("domain/policies/memory.py", "_SPARE = 2", "_SPARE = 1"),
    Mutant("domain/policies/products.py", "_STRONG = 0.5", "_STRONG = 0.1"),
    Mutant("domain/policies/products.py", "if not _is_told(tokens, span, run) and", "if not tokens and"),
    Mutant("domain/policies/products.py", " if not uses[name].trusted]", "]"),
    Mutant("domain/policies/products.py", "not ordinary and before in _BETWEEN and told", "before in _BETWEEN"),
    Mutant("domain/policies/products.py", " and parts.isdisjoint(span)]", "]"),
    Mutant(_SHORTLIST, "is Verdict.MATCH and within is not verdict else", "is None else"),
    Mutant("domain/policies/titles.py", "max(len(title), _SHORTEST)", "len(title)"),
    Mutant("domain/policies/titles.py", "_SPOKEN = 0.5", "_SPOKEN = 0.0"),
    Mutant("domain/policies/titles.py", "stems(ask.searched)", "stems(ask.plain)"),
    Mutant("domain/text/spelling.py", "sorted(one) == sorted(other) and ", ""),
    Mutant("domain/text/spelling.py", "min(len(one), len(other)) >= _SHORTEST and ", ""),
    Mutant("domain/policies/products.py", "plain=named.rest, notes=", "notes="),
    Mutant("domain/policies/products.py", "for span in spans.values())\n    here", "for span in missing)\n    here"),
    Mutant("domain/policies/products.py", "if each.id in own or _is_of(", "if _is_of("),
    Mutant("domain/policies/products.py", "if not missing or not missing[0]:", "if not missing:"),
    Mutant("domain/text/acts.py", "WRITE = MAKE | EDIT", "WRITE = MAKE"),
    Mutant("domain/text/acts.py", "Act.EDIT: \"update edit", "Act.MAKE: \"update edit"),
    Mutant(_SENIORITY, "max(first - 2, -1)", "max(first - 1, -1)"),
    Mutant(_SENIORITY, "older(-1) - older(last) >", "older(-1) >"),
    Mutant("usecases/receipts.py", "kinds=() if others else query.kinds", "kinds=query.kinds"),
    Mutant("usecases/discover.py", "if pool.free > 0 and pool.instead:", "if False:"),
    Mutant(_SENIORITY, "min([ages.oldest_s, *(", "min([math.inf, *("),
    Mutant("usecases/rerank.py", "misfit = not 0 < len(reply.scores) <= len(sent)", "misfit = not reply.scores"),
    Mutant("edge/authorizer.py", "_LEEWAY_S = 30", "_LEEWAY_S = 3_000"),
    Mutant("adapters/sqlite/registry.py", "rows[id] = replace(own, approved=digest)",
           "rows.setdefault(id, NOTHING_ASSIGNED)", also="tests/integration/test_move.py"),
    Mutant("adapters/sqlite/registry.py", "AND id NOT IN (SELECT id FROM events)", "",
           also="tests/integration/test_move.py"),
    Mutant("adapters/sqlite/backup.py", "indexed_rev = 0 WHERE status", "indexed_rev = indexed_rev WHERE status",
           also="tests/integration/test_move.py"),
    Mutant("adapters/sqlite/backup.py", "for (id,) in target.execute(_REMOVED).fetchall():", "for id in ():",
           also="tests/integration/test_move.py"),
    Mutant("usecases/gate.py", "again = held is not None and case.has(held.digest)", "again = rejected",
           also="tests/unit/usecases/test_hold.py"),
    Mutant("usecases/gate.py", "(is_open and not rejected)", "is_open", also="tests/unit/usecases/test_hold.py"),
    Mutant("local/imports/sync.py", "step is Step.WRITE and self.first and (", "step is Step.EDITED and ("),
    Mutant("domain/policies/products.py", "(after or (start and tokens[start - 1].lowered in _ABOUT))", "after"),
    Mutant("domain/policies/products.py", " or _marker(tokens, run, _TOWARDS) < run.start", ""),
    Mutant("domain/capability/json_schema.py", "wrong := _wrong_type(value, schema, path, texts) or", 'wrong := "" or',
           also="tests/unit/client"),
    *(Mutant(f"adapters/dynamodb/{name}.py", before, after) for name, before, after in (
        ("tables", "_BATCH = 100", "_BATCH = 101"),
        ("tables", 'answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])', "[]"),
        ("tables", '{"ConditionalCheckFailed", "TransactionConflict"}', '{"ConditionalCheckFailed"}'),
        ("tables", 'if "LastEvaluatedKey" not in page:', "if True:"),
        ("tables", "if what and error", "if error"),
        ("registry", "OR #kind = :kind", "OR #kind = :kind OR attribute_exists(#kind)"),
        ("registry", "if answer is None and self.get([id]):", "if False:"),
        ("registry", '{"S": f"{namespace}."}', '{"S": namespace}'),
        ("registry", "if name not in row and name not in _KEY]", "if False]"),
        ("profiles", '"#rev = :before" if before', '"#rev = :before OR attribute_exists(#rev)" if before'),
        ("profiles", "!= profile.rev - 1:", "> profile.rev - 1:"),
        ("profiles", '"#rev = :rev", Key', '"#rev >= :rev", Key'),
        ("profiles", 'if body.get("expires_at", now + 1) > now', "if True"),
        ("profiles", 'if body["row"] == "removed"', "if True"),
        ("profiles", "if marked is None:", "if False:"),
        ("profiles", '#rev = :rev", Item', '#rev >= :rev", Item'),
        ("receipts", '"events = :events"', '"events = :events OR attribute_exists(events)"'),
        ("receipts", '_ABSENT = {"ConditionExpression": "attribute_not_exists(query_id)"}', "_ABSENT = {}"),
        ("receipts", 'if lessons or not key["query_id"]["S"].startswith(TAUGHT)', "if True"),
        ("receipts", "at = None if receipt.query_id.startswith(TAUGHT) else", "at ="),
        ("receipts", 'if row and int(row["expires_at"]["N"]) > self.retention.now() else', "if row else"),
        ("receipts", " AND NOT confirmed = :yes", ""),
        ("receipts", "known.union(each.event for each in added)", "frozenset(each.event for each in added)"),
    )),
    *(Mutant(f"adapters/opensearch/{name}.py", before, after) for name, before, after in (
        ("index", "_SLACK = 16", "_SLACK = 0"),
        ("index", '"version_type": "external"', '"version_type": "external_gte"'),
        ("index", "_BULK_BYTES = 5_000_000", "_BULK_BYTES = 50_000_000"),
        ("index", "                self.restore(target)\n                self.fill(target, entries)\n",
         "                self.restore(target)\n"),
        ("index", 'sort=["_score", {"id": "asc"}]', 'sort=["_score"]'),
        ("index", 'clauses = [*mapping.filter_clauses(admitted), {"term": {"encoder": self.encoder}}]',
         "clauses = [*mapping.filter_clauses(admitted)]"),
        ("index", '{"term": {"findable": False}}, ', ""),
        ("index", "self.domain.refresh(target.name)", "pass"),
        ("domain", '"allow_partial_search_results": "false"', '"allow_partial_search_results": "true"'),
        ("domain", '"require_alias": "true"', '"require_alias": "false"'),
        ("domain", ' and result["status"] != _CONFLICT', ""),
        ("memory", '"version_type": "external_gte"', '"version_type": "external"'),
        ("memory", '["value"] > 1 or', '["value"] > 0 or'),
        ("memory", '"must_not": [_IS_LESSON]', '"must_not": []'),
    )),
    *(Mutant(f"infra/constructs/{name}.py", before, after) for name, before, after in (
        ("tables", "point_in_time_recovery_enabled=True", "point_in_time_recovery_enabled=False"),
        ("tables", "deletion_protection=self._shared.protected", "deletion_protection=False"),
        ("tables", "removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE", "removal_policy=RemovalPolicy.DESTROY"),
        ("tables", "StreamViewType.KEYS_ONLY if", "StreamViewType.NEW_IMAGE if"),
        ("tables", '"Receipts", "query_id", expires="expires_at"', '"Receipts", "query_id"'),
        ("event_path", "bisect_batch_on_error=True", "bisect_batch_on_error=False"),
        ("event_path", "report_batch_item_failures=True,\n                # however", "# however"),
        ("event_path", "Duration.hours(20)", "Duration.hours(30)"),
        ("event_path", "max_receive_count=MAX_RECEIVES", "max_receive_count=1"),
        ("event_path", "else sqs.RedrivePermission.DENY_ALL", "else sqs.RedrivePermission.ALLOW_ALL"),
        ("function", 'allow("kms:Decrypt", ', 'allow("kms:*", "kms:Decrypt", '),
    )),
)  # fmt: skip


_STACKS = "tests/infra/test_stacks.py"
SUITES = {
    "adapters/dynamodb/tables": ("tests/integration/test_dynamodb_faults.py", "tests/contract/test_registry.py"),
    "adapters/dynamodb/registry": ("tests/contract/test_registry.py", "tests/contract/test_sources.py"),
    "adapters/dynamodb/profiles": ("tests/contract/test_profiles.py", "tests/integration/test_dynamodb_faults.py"),
    "adapters/dynamodb/receipts": (
        "tests/contract/test_outcomes.py", "tests/contract/test_receipts.py",
        "tests/unit/adapters/test_outcome_retention.py", "tests/integration/test_learning_faults.py",
    ),
    "adapters/opensearch/index": ("tests/contract/test_index.py", "tests/integration/test_opensearch_faults.py"),
    "adapters/opensearch/domain": ("tests/integration/test_opensearch_faults.py", "tests/contract/test_index.py"),
    "adapters/opensearch/memory": ("tests/contract/test_memory.py",),
    "infra/constructs/tables": tuple(f"{_STACKS}::test_{name}" for name in (
        "properties_that_every_context_has", "the_tables_outlive_their_stack", "streams_carry_keys_only",
        "tables_can_be_deleted_only_where_a_first_creation_has_to_be_undone", "receipts_expire_and_outcomes_stay",
    )),
    "infra/constructs/event_path": tuple(f"{_STACKS}::test_{name}" for name in (
        "a_dead_letter_queue_is_at_every_hop", "queues_are_spoken_to_only_over_tls", "few_batches_run_at_once",
        "the_numbers_that_the_path_suite_plays_outlive_an_outage_of_an_afternoon",
    )),
    "infra/constructs/function": tuple(f"{_STACKS}::test_{name}" for name in (
        "whoever_uses_a_table_may_use_its_key", "no_wildcard_is_on_a_data_action",
    )),
}  # fmt: skip
"""The tests of stores and templates, by the start of a mutant's file."""


def suites(mutant: Mutant) -> Sequence[str]:
    return next((tests for start, tests in SUITES.items() if mutant.file.startswith(start)), ())


def path_of(mutant: Mutant, tree: Path) -> Path:
    return tree / ("" if mutant.file.startswith("infra/") else CODE) / mutant.file


def plant(mutant: Mutant, tree: Path) -> str:
    """Plant a mutant; the text of its file before. Raises LookupError: its place is not there, or not the only one."""
    file = path_of(mutant, tree)
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.before) != 1:
        raise LookupError(f"{mutant.file} has {mutant.before!r} {text.count(mutant.before)} times: correct the mutant")
    file.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
    return text


def suite_of(mutant: Mutant, tree: Path) -> list[str]:
    """The suites of a store or a template, or the unit tests that import a module, those of the pipeline, its own."""
    if tests := suites(mutant):
        return [*filter(None, [mutant.also]), *tests]
    module = f"mats.{mutant.file.removesuffix('.py').replace('/', '.')}"
    files = sorted((tree / "tests/unit").rglob("test_*.py"))
    own = [str(file.relative_to(tree)) for file in files if module in file.read_text(encoding="utf-8")]
    pipeline = (
        [name for name in _PIPELINE if (tree / name).exists()]
        if mutant.file.startswith(("domain/", "usecases/"))
        else []
    )
    return [*filter(None, [mutant.also]), *dict.fromkeys((*own, *pipeline))]


def is_killed(tree: Path, tests: Sequence[str]) -> bool:
    """Return whether a test fails in the tree. Raises RuntimeError if the tests cannot be run."""
    if not tests:
        return False
    environment = {**os.environ, "PYTHONPATH": f"{tree / CODE.parent}:{tree}", "PYTHONDONTWRITEBYTECODE": "1"}
    chosen = "not long" if any(set(tests) & set(suite) for suite in SUITES.values()) else "not server and not long"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", chosen, *tests]
    ran = subprocess.run(command, cwd=tree, env=environment, capture_output=True, check=False)
    if b"\nFAILED " in ran.stdout or b"AwsSolutions-" in ran.stdout:  # a test, or a rule that refuses the synthesis
        return True
    if ran.returncode:  # an error of a fixture, as of a server that does not start, says nothing of the mutant
        raise RuntimeError(ran.stdout.decode()[-2_000:] + ran.stderr.decode()[-2_000:])
    return False


def try_all(mutants: Sequence[Mutant], at_once: int) -> Iterator[tuple[Mutant, bool]]:
    """Each mutant with whether it was killed, in order. Raises RuntimeError: a test fails without any."""
    with tempfile.TemporaryDirectory(prefix="mats-mutants-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(at_once):
            tree = Path(folder) / str(number)
            tree.mkdir()
            for name in _COPIED:
                copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
                copy(ROOT / name, tree / name)
            trees.put(tree)

        for mutant in mutants:  # each has its place, before the first is tried
            path_of(mutant, tree).write_text(plant(mutant, tree), encoding="utf-8")
        every = {name for mutant in mutants for name in suite_of(mutant, tree)}
        if is_killed(tree, sorted({*every, *_WIDE})):
            raise RuntimeError("a test fails without any mutant: mend it first")

        def is_seen(mutant: Mutant) -> bool:
            tree = trees.get()
            before = plant(mutant, tree)
            try:
                return is_killed(tree, suite_of(mutant, tree)) or (not suites(mutant) and is_killed(tree, _WIDE))
            finally:
                path_of(mutant, tree).write_text(before, encoding="utf-8")
                trees.put(tree)

        with ThreadPoolExecutor(at_once) as pool:
            yield from zip(mutants, pool.map(is_seen, mutants), strict=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--file", action="append", help="only mutants of files whose path has this; repeatable")
    parser.add_argument("--at-once", type=int, default=2, help="mutants that are tried at the same time")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if any(part in mutant.file for part in options.file or [""])]
    survivors = 0
    for mutant, killed in try_all(chosen, options.at_once):
        survivors += not killed
        change = f"{mutant.file}: {mutant.before.strip()} -> {mutant.after.strip()}"
        sys.stdout.write(f"{'killed  ' if killed else 'SURVIVED'} {change}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - survivors} killed, {survivors} survived\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
