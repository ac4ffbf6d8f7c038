"""The form of an experiment: systems (arms) are asked the queries of registries (panels), measured, and shown."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from experiments.report.cells import FigureForm, Section, TableForm, run_notes
from experiments.variants import SYSTEMS
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.measures import NAMES
from mats.evaluation.results import Json
from mats.evaluation.systems.base import Answers
from mats.evaluation.systems.catalogue import Variant
from mats.evaluation.systems.score import dataset_json

if TYPE_CHECKING:
    from experiments.context import ExperimentContext

RAW, ALL = "", "all"  # What of a writer's text a registry has: nothing, or all five fields


@dataclass(frozen=True, slots=True)
class Panel:
    """Queries that are asked together; with several parts, each has a registry and queries of its own."""

    label: str
    parts: tuple[Dataset, ...]
    derived: str = ""
    """The name of a registry that was made from a set; empty if it is the set's, whatever part of its queries is
    asked. Registries of one name are the same."""
    known: Mapping[str, Any] = field(default_factory=dict)  # What its measures need beside answers and labels

    @property
    def queries(self) -> int:
        return sum(len(part.queries) for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        return {**dataset_json(self.parts[0]), "queries": self.queries}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A system under test with what is special about it in an experiment."""

    label: str
    system: Variant
    writes: str | None = None
    """RAW, ALL or the one field that the writer adds; None: as the command says, for a system with an LLM."""
    model: str = ""  # The language model, if not that of the settings
    encoder: str = ""  # The encoder, if not that of the settings
    before: str = ""  # The label of the arm that it is compared with, query by query
    not_run: str = ""  # Why it cannot be asked in this run; empty if it can

    @property
    def needs(self) -> frozenset[str]:
        return self.system.needs | ({"llm"} if self.writes else frozenset())


def arm(name: str, *, label: str = "", **options: Any) -> Arm:
    """A system of SYSTEMS by name as an arm."""
    return Arm(label=label or name, system=SYSTEMS[name], **options)


def arms(*names: str, before: str = "") -> tuple[Arm, ...]:
    return tuple(arm(name, before=before) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The answers of an arm to the queries that it was asked."""

    panel: Panel
    answers: Answers
    dataset: Dataset  # Its queries are those that were asked
    before: Answers | None  # To the same queries, of the arm that it is compared with; None if that was not run
    defined: Sequence[str] = NAMES  # The measures that are defined for the system
    recorded: bool = False  # Replies of its language model are recorded, so that their time is not known
    empty_summaries: int | None = None  # Profiles whose summary the writer left empty


Measure: TypeAlias = Callable[[Asked], dict[str, Any]]
Arms: TypeAlias = "Sequence[Arm] | Callable[[ExperimentContext], Sequence[Arm]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One question: what is asked of what, what is measured, and how the report shows it."""

    name: str
    place: int  # Its place in the report, ascending
    title: str
    about: str
    panels: "Callable[[ExperimentContext], Iterable[Panel]]"
    arms: Arms
    measures: Sequence[Measure]
    tables: Sequence[TableForm]
    figures: Sequence[FigureForm] = ()
    finding: Callable[[Mapping[str, Json]], str] = lambda panels: ""
    """A sentence for the head of the report from the panels; empty if its systems were not run."""

    def run(self, context: "ExperimentContext") -> dict[str, Any]:
        """Results as JSON: by panel its sizes and, by arm, the measures or `not_run` with the reason."""
        chosen = self.arms(context) if callable(self.arms) else self.arms
        sets: dict[str, Any] = {}
        for panel in self.panels(context):
            context.close_derived(panel.derived)
            systems = {each.label: self._cell(context, panel, each, chosen) for each in chosen}
            sets[panel.label] = {**panel.to_json(), "systems": systems}
        return {"k": context.models.settings.k, "sets": sets}

    def _cell(self, context: "ExperimentContext", panel: Panel, one: Arm, chosen: Sequence[Arm]) -> dict[str, Any]:
        asked = context.ask(panel, one, next((each for each in chosen if each.label == one.before), None))
        if isinstance(asked, str):
            return {"not_run": asked}
        cell = context.counts(panel, one)
        for measure in self.measures:
            cell |= measure(asked)
        return cell

    def section(self, results: Json, paper: Json) -> Section:
        """Its part of the report."""
        tables = [form.table(results["sets"], paper) for form in self.tables]
        tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, *run_notes(results["sets"])))
        return Section(
            id=self.name,
            title=self.title,
            summary=f"{self.about} `python -m experiments run --data DATA {self.name}`",
            tables=tuple(tables),
            figures=tuple(
                form.figure(results["sets"], paper) for form in self.figures if form.is_shown(results["sets"])
            ),
        )
