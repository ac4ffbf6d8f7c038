"""The attacks by registrations; those by reports are in `false_reports`."""

from dataclasses import replace

from experiments.attacks import items
from experiments.attacks.scene import Attack, AttackTarget, Knowledge, Scene, Wave
from mats.domain.capability.capability import Id, Lifecycle, parts
from mats.domain.capability.registration import Registration
from mats.evaluation.data.datasets import JudgedQuery

TRUSTED = 70
"""From this trust on a capability counts as trusted."""
_QUERIES, _REGISTRATION, _NOTHING = Knowledge.QUERIES, Knowledge.REGISTRATION, Knowledge.NOTHING


def _claim_provider(target: AttackTarget, *, named: bool, verified: bool) -> Wave | None:
    """A copy under the provider's name; None for a target without provider.

    The query names it if `named`; operators have verified it for the target's namespace if `verified`.
    """
    provider = target.item.provider
    if not provider:
        return None
    text = f"{target.query.text} with {provider}" if named else target.query.text
    asked = replace(target, query=replace(target.query, id=f"{target.query.id}+", text=text)) if named else target
    copy = items.copy_into(target.item.item(), items.NAMESPACE)
    return Wave(items=[copy], targets=[asked], verified={target.item.namespace: provider} if verified else {})


def _claimed_trusted(scene: Scene, *, named: bool, verified: bool = False) -> list[Wave]:
    trusted = [target for target in scene.targets if scene.trust.get(target.item.id, 0) >= TRUSTED]
    return [wave for target in trusted if (wave := _claim_provider(target, named=named, verified=verified))]


def _deprecated_twin(target: AttackTarget, trust: int | None = None) -> Wave | None:
    if target.item.lifecycle is Lifecycle.DEPRECATED:
        return None
    fields = target.item.item() | {"lifecycle": "deprecated", "namespace": f"{parts(target.item.id)[0]}.v0"}
    twin = Registration.parse(fields)
    return Wave(items=[twin], targets=[target], trust={} if trust is None else {twin.id: trust})


def _trusted_noise(scene: Scene) -> list[Wave]:
    """Unrated targets, and the trusted capabilities that are irrelevant to their queries."""
    trusted = {id for id, trust in scene.trust.items() if trust >= TRUSTED}
    targets = [target for target in scene.targets if not target.query.relevant & scene.trust.keys()]
    if not trusted:
        return []
    return [Wave(items=[], targets=targets, attackers=frozenset(trusted))] if targets else []


def _stock_query(scene: Scene) -> list[Wave]:
    """A query in the words of no trusted capability, with the right capability in the registry, unrated."""
    trusted = frozenset(id for id, trust in scene.trust.items() if trust >= TRUSTED)
    if not trusted:
        return []
    stock = Registration.parse(
        {
            "namespace": "com.example.erp",
            "name": "getStock",
            "kind": "tool",
            "description": "Returns the stock level of an article in a warehouse.",
            "input_schema": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "warehouse": {"type": "string"}},
            },
        }
    )
    text = "how many units of SKU 4711 do we have left in Hamburg?"
    target = AttackTarget(JudgedQuery("stock", text, frozenset({Id(stock.id)})), stock)
    return [Wave(items=[stock], targets=[target], attackers=trusted)]


def _vocabulary(scene: Scene) -> list[Wave]:
    item = items.assistant({"description": items.common_words(scene)})
    return [Wave(items=[item], targets=scene.targets)]


ATTACKS = (
    Attack("1 item, 50 queries in its description", _QUERIES, items.one_item(items.in_description)),
    Attack("1 item, 50 queries as examples", _QUERIES, items.one_item(items.as_examples)),
    Attack("1 item, 50 queries as tags", _QUERIES, items.one_item(items.as_tags)),
    Attack("1 item, 50 queries as parameter descriptions", _QUERIES, items.one_item(items.as_parameters)),
    Attack("1 item, 50 queries everywhere", _QUERIES, items.one_item(items.everywhere)),
    Attack("1 item, 50 queries as negative examples", _QUERIES, items.one_item(items.as_negative_examples)),
    Attack("1 item, common words of the registry", _REGISTRATION, _vocabulary),
    Attack("1 item a query, as its description", _QUERIES, items.item_each(lambda text: items.in_description([text]))),
    Attack("1 item a query, as its example", _QUERIES, items.item_each(lambda text: items.as_examples([text]))),
    Attack("1 item a query, as its name", _QUERIES, items.item_each(items.as_name)),
    Attack(
        "1 item a query, half its words as example",
        _QUERIES,
        items.item_each(lambda text: items.as_examples([items.half(text)])),
    ),
    Attack("20 items, 2-3 queries each, description", _QUERIES, items.shared_out(items.in_description)),
    Attack("20 items, 2-3 queries each, everywhere", _QUERIES, items.shared_out(items.everywhere)),
    Attack(
        "20 near-duplicates, 50 queries in the description", _QUERIES, items.permute(items.in_description, namespaces=1)
    ),
    Attack("20 near-duplicates, 50 queries as examples", _QUERIES, items.permute(items.as_examples, namespaces=1)),
    Attack("the same in 20 namespaces", _QUERIES, items.permute(items.as_examples, namespaces=items.FLOOD)),
    Attack("flood: 20 near-duplicates of one query", _QUERIES, items.flood(items.near_query)),
    Attack("flood: 20 differently padded items of one query", _QUERIES, items.flood(items.padded_query)),
    Attack("flood: 20 copies of one target, 1 namespace", _REGISTRATION, items.flood(items.near_copies(namespaces=1))),
    Attack(
        "flood: 20 copies of one target, 20 namespaces",
        _REGISTRATION,
        items.flood(items.near_copies(namespaces=items.FLOOD)),
    ),
    Attack("copy, exact", _REGISTRATION, items.copy_each(items.copy_with())),
    Attack("copy, one word added", _REGISTRATION, items.copy_each(items.rewrite("{} Fast.".format))),
    Attack("copy, one homoglyph", _REGISTRATION, items.copy_each(items.rewrite(items.one_homoglyph))),
    Attack("copy, a few homoglyphs", _REGISTRATION, items.copy_each(items.rewrite(items.some_homoglyphs))),
    Attack("copy, homoglyphs throughout", _REGISTRATION, items.copy_each(items.rewrite(items.all_homoglyphs))),
    Attack("copy, one zero-width space", _REGISTRATION, items.copy_each(items.rewrite(items.zero_width))),
    Attack(
        "copy, its description as example",
        _REGISTRATION,
        items.copy_each(
            items.copy_with(examples=lambda target: [(target.item.description or target.item.name)[:2000]])
        ),
    ),
    Attack(
        "copy, common verbs as examples",
        _REGISTRATION,
        items.copy_each(items.copy_with(examples=lambda _: items.VERBS)),
    ),
    Attack(
        "copy, the query as example",
        _QUERIES,
        items.copy_each(items.copy_with(examples=lambda target: [target.query.text[:2000]])),
    ),
    Attack(
        "claimed provider of a trusted capability", _REGISTRATION, lambda scene: _claimed_trusted(scene, named=False)
    ),
    Attack("the same, the query names it", _REGISTRATION, lambda scene: _claimed_trusted(scene, named=True)),
    Attack(
        "claimed provider that is verified for the target",
        _REGISTRATION,
        lambda scene: _claimed_trusted(scene, named=True, verified=True),
    ),
    Attack("deprecated twin", _NOTHING, items.one_by_one(_deprecated_twin)),
    Attack("deprecated twin rated 90", _NOTHING, items.one_by_one(lambda target: _deprecated_twin(target, 90))),
    Attack("trusted capabilities of another task", _NOTHING, _trusted_noise),
    Attack("the same, SKU 4711 in Hamburg", _NOTHING, _stock_query),
)
"""In the order of the report."""
