// Two results of one query side by side, and why one ranks above the other.

import { h, fill, markWords, percent, score } from "./dom.js";
import { answerTo, linkTo, questionOf } from "./query.js";
import { labelOf, points, signalsOf } from "./signals.js";

let main, params, running;

export const compare = { title: "Compare", open, update, close, keys: { Escape: back } };

async function open(element, given) {
  main = element;
  await update(given);
}

function close() {
  running?.abort();
}

function back() {
  location.hash = linkTo("search", params, { a: undefined, b: undefined });
  return true;
}

async function update(given) {
  params = given;
  running?.abort();
  running = new AbortController();
  const question = questionOf(params);
  const away = h("p", {}, h("a", { href: linkTo("search", params, { a: undefined, b: undefined }) }, "← The shortlist"));
  if (!question) return void fill(main, h("h1", {}, "Compare"), away, h("p", { class: "notice" }, "No query: pick two results of a search."));
  const answer = await answerTo(question, { signal: running.signal });
  const pair = ["a", "b"].map((side) => answer.results.find(({ id }) => id === params.get(side)));
  if (pair.includes(undefined)) {
    const gone = ["a", "b"].filter((_, i) => !pair[i]).map((side) => params.get(side) || "nothing");
    return void fill(main, h("h1", {}, "Compare"), away, h("p", { class: "notice" }, `Not on this shortlist: ${gone.join(" and ")}.`));
  }
  const places = pair.map((result) => answer.results.indexOf(result) + 1);
  const upper = places[0] <= places[1] ? 0 : 1;
  show(question, [pair[upper], pair[1 - upper]], [places[upper], places[1 - upper]], answer, away);
}

function show(question, pair, places, answer, away) {
  const [upper, lower] = pair;
  const signals = signalsOf(answer.results, answer.base).filter((signal) => pair.some((result) => signal in result.signals));
  const gains = signals.map((signal) => ({ signal, by: points(upper, signal) - points(lower, signal) }));
  fill(
    main,
    away,
    h("h1", {}, `Why is ${titleOf(upper, lower)} above ${titleOf(lower, upper)}?`),
    h("p", { class: "hint" }, "Query: ", h("q", {}, question.query)),
    h("p", { class: "because" }, because(upper, lower, gains)),
    ...weightNotices(upper, lower),
    h("div", { class: "wide", role: "region", "aria-label": "Signals of both", tabindex: "0" }, table(pair, places, signals, gains)),
    h("div", { class: "two" }, pair.map((result, i) => one(result, places[i], titleOf(result, pair[1 - i])))),
  );
}

/** The name, or the id if both have the same name. */
function titleOf(result, other) {
  return result.name === other.name ? result.id : result.name;
}

/** The difference as a sentence, largest gains first. */
function because(upper, lower, gains) {
  const apart = upper.score - lower.score;
  if (Math.abs(apart) < 0.00005) {
    if (upper.lifecycle !== lower.lifecycle) return "Equal scores: an active capability ranks before a deprecated one.";
    return "Equal scores: ordered by id.";
  }
  if (apart < 0) return `It scores ${score(-apart)} lower, but the reranker's reply was cut off before it reached ${titleOf(lower, upper)}: scored candidates rank first.`;
  const sorted = [...gains].sort((one, other) => Math.abs(other.by) - Math.abs(one.by));
  const [pro, contra] = [sorted.filter(({ by }) => by >= 0.0005), sorted.filter(({ by }) => by <= -0.0005)];
  const summarize = (list) => list.map(({ signal, by }) => `${labelOf(signal).toLowerCase()} (${formatSigned(by)})`).join(", ");
  return [h("strong", {}, `It scores ${apart.toFixed(3)} higher. `), `For it: ${summarize(pro) || "nothing"}. `, contra.length > 0 && `Against it: ${summarize(contra)}.`];
}

function formatSigned(number) {
  return `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(3)}`;
}

/** A notice for each result that lacks a signal of the other, because its other signals weigh more. */
function weightNotices(upper, lower) {
  return [upper, lower].flatMap((result, i) => {
    const other = i ? upper : lower;
    const lacking = Object.keys(other.signals).filter((signal) => !(signal in result.signals));
    return lacking.length ? [h("p", { class: "notice" }, `${titleOf(result, other)} has no ${lacking.map((signal) => labelOf(signal).toLowerCase()).join(" and no ")}, so its other signals weigh more.`)] : [];
  });
}

function table(pair, places, signals, gains) {
  const most = Math.max(...gains.map(({ by }) => Math.abs(by)), 0.001);
  return h(
    "table",
    { class: "compared" },
    h("thead", {},
      h("tr", {}, h("th", { scope: "col", rowspan: "2" }, "signal"), pair.map((result, i) => h("th", { scope: "colgroup", colspan: "3" }, `${places[i]}. ${titleOf(result, pair[1 - i])}`)), h("th", { scope: "col", rowspan: "2" }, "difference")),
      h("tr", {}, pair.flatMap(() => ["value", "weight", "points"].map((name) => h("th", { scope: "col" }, name))))),
    h("tbody", {}, gains.map(({ signal, by }) => h("tr", {}, h("th", { scope: "row" }, h("span", { class: `dot ${signal}`, "aria-hidden": "true" }), labelOf(signal)), pair.map((result, i) => cells(result, signal, `${places[i]}.`)), h("td", { class: "gain" }, tilt(by / most), formatSigned(by))))),
    h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "score"), pair.map((result, i) => [h("td"), h("td"), h("td", { "data-of": `${places[i]}.` }, h("strong", {}, result.score.toFixed(3)))]), h("td", { class: "gain" }, h("strong", {}, formatSigned(pair[0].score - pair[1].score))))),
  );
}

function cells(result, signal, place) {
  if (!(signal in result.signals)) return h("td", { colspan: "3", class: "absent", "data-of": place }, "absent");
  return [h("td", { "data-of": place }, result.signals[signal].toFixed(3)), h("td", { class: "times" }, percent(result.weights[signal] ?? 0)), h("td", { class: "makes" }, points(result, signal).toFixed(3))];
}

/** A bar to the right for a gain of the upper result, to the left for one of the lower. */
function tilt(share) {
  return h("span", { class: `tilt ${share < 0 ? "against" : ""}`, "aria-hidden": "true" }, h("span", { "--share": Math.abs(share) }));
}

function one(result, place, title) {
  const words = new Set(result.why?.spelled ?? []);
  const why = result.why ?? { matched: [], fields: [] };
  return h(
    "section",
    { class: "card", "aria-label": title },
    h("h2", {}, `${place}. `, h("a", { href: linkTo("search", params, { a: undefined, b: undefined, open: result.id }) }, markWords(result.name, words))),
    h("p", { class: "about" }, h("span", { class: `kind ${result.kind}` }, result.kind), result.namespace, result.lifecycle === "deprecated" && h("span", { class: "flag" }, "deprecated")),
    h("p", {}, result.summary ? markWords(result.summary, words) : "No description."),
    h("dl", { class: "facts" },
      h("dt", {}, "words matched"), h("dd", {}, why.matched.length ? why.matched.join(", ") : "none; near in meaning"),
      h("dt", {}, "in"), h("dd", {}, why.fields.map((field) => field.replaceAll("_", " ")).join(", ") || "–"),
      h("dt", {}, "suspicious"), h("dd", {}, result.suspicious.length ? result.suspicious.join("; ") : "no")),
  );
}
