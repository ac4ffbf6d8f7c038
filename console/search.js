// The search page: a query, the shortlist, and the reasons of each result.

import { h, fill, plural, say, setText } from "./dom.js";
import * as panel from "./panel.js";
import { KINDS, answerTo, clearAnswer, linkTo, questionOf } from "./query.js";
import { row, signalsOf } from "./result.js";
import { nextSteps, summary } from "./verdict.js";

let params, form, answerBox, side, running;

export const search = { title: "Search", open, update, close, links: () => [...answerBox.querySelectorAll("a.name")], escape: closePanel };

async function open(main, given) {
  form = queryForm();
  answerBox = h("section", { "aria-label": "Shortlist" });
  side = h("div", { class: "side" });
  fill(main, h("h1", { class: "unseen" }, "Search"), form, h("div", {}, answerBox, side));
  await update(given);
}

function close() {
  running?.abort();
  panel.close(side);
}

async function update(given) {
  params = given;
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  const question = questionOf(params);
  fillForm();
  document.title = question ? `${question.query} · mats` : "Search · mats";
  if (!question) {
    panel.close(side);
    form.elements.q.focus({ preventScroll: true });
    delete answerBox.dataset.shown;
    return void fill(answerBox, h("p", {}, "Describe the task in your own words. The shortlist shows which models, agents, tools and skills fit, and why. Nothing is invoked."));
  }
  const isShown = answerBox.dataset.shown === JSON.stringify(question);
  if (!isShown) answerBox.setAttribute("aria-busy", "true");
  try {
    const answer = await answerTo(question, { signal });
    if (!isShown) show(question, answer);
    const opened = answer.results.find(({ id }) => id === params.get("open"));
    await panel.show(side, params.get("open"), { words: new Set(opened?.why?.spelled ?? []), away: closePanel, signal });
  } catch (error) {
    if (error.name === "AbortError") return;
    delete answerBox.dataset.shown;
    const faults = error.errors?.map(({ field, message }) => h("li", {}, field && h("code", {}, field), field && " ", message)) ?? [];
    fill(answerBox, h("div", { class: "notice bad" }, h("p", {}, error.message), faults.length > 0 && h("ul", {}, faults)));
    say(error.message);
  } finally {
    if (!signal.aborted) answerBox.removeAttribute("aria-busy");
  }
}

function queryForm() {
  return h(
    "form",
    { class: "ask", role: "search", onsubmit: submit },
    h("label", { class: "query" }, h("span", {}, "What do you need to do?"),
      h("input", { type: "search", name: "q", maxlength: 2000, autocomplete: "off", placeholder: "refund a customer's card payment", enterkeyhint: "search" })),
    h("button", { class: "main" }, "Find"),
    h("div", { class: "filters" },
      h("fieldset", { class: "kinds" }, h("legend", { class: "unseen" }, "Kinds"),
        KINDS.map((kind) => h("label", { class: "chip" }, h("input", { type: "checkbox", name: "kind", value: kind, onchange: ask }), kind))),
      h("label", { class: "row" }, h("span", {}, "Namespace"), h("input", { name: "ns", autocomplete: "off", spellcheck: "false", placeholder: "com.acme", onchange: ask }))),
  );
}

function fillForm() {
  const { q, ns } = form.elements;
  setText(q, params.get("q") ?? "");
  setText(ns, params.getAll("ns").join(", "));
  const kinds = params.getAll("kind");
  for (const box of form.querySelectorAll("[name=kind]")) box.checked = kinds.includes(box.value);
}

function submit(event) {
  event.preventDefault();
  ask();
}

/** Put the form into the address; the same query again is sent again. */
function ask() {
  const { q, ns } = form.elements;
  const kinds = [...form.querySelectorAll("[name=kind]:checked")].map((box) => box.value);
  const next = linkTo("search", "", { q: q.value.trim(), kind: kinds, ns: ns.value.split(",").map((one) => one.trim()) });
  if (next !== linkTo("search", params)) location.hash = next;
  else if (questionOf(params)) {
    clearAnswer();
    delete answerBox.dataset.shown;
    update(params);
  }
}

function show(question, answer) {
  const { results, thresholds, verdict, degraded } = answer;
  const around = { signals: signalsOf(results, answer.base), weights: answer.base, mixed: results.some(({ enriched }) => enriched), link };
  const rows = (some) => h("ol", { class: "shortlist" }, some.map((result) => row(result, results.indexOf(result) + 1, around)));
  const [relevant, others] = split(results, thresholds?.weak ?? 0, verdict);
  answerBox.dataset.shown = JSON.stringify(question);
  fill(
    answerBox,
    summary(answer),
    relevant.length > 0 && rows(relevant),
    verdict === "none" && nextSteps(params),
    others.length > 0 && h("details", {}, h("summary", {}, `${others.length} less relevant`), rows(others)),
  );
  say(`${verdict}: ${plural(relevant.length, "result")}${others.length ? `, ${others.length} less relevant` : ""}${degraded.length ? `, without ${degraded.join(", ")}` : ""}`);
}

/** The results of at least this relevance, or the nearest three, and the others; all if the verdict doubts the threshold. */
function split(results, weak, verdict) {
  if (verdict === "none") return [results.slice(0, 3), results.slice(3)];
  const relevant = results.filter(({ relevance }) => relevance >= weak);
  return relevant.length > 0 ? [relevant, results.filter(({ relevance }) => relevance < weak)] : [results, []];
}

/** The attributes of a link that opens the panel without changing the other parameters. */
function link({ id }) {
  return {
    href: linkTo("search", params, { open: id }),
    "data-id": id,
    onclick: (event) => event.currentTarget.setAttribute("href", linkTo("search", params, { open: id })),
  };
}

function closePanel() {
  return panel.leave("search", params);
}
