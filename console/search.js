// The search page: a query, the shortlist, and the reasons of each result.

import { h, fill, plural, say } from "./dom.js";
import { home, welcome } from "./home.js";
import { moveKeys } from "./keys.js";
import * as panel from "./panel.js";
import { KINDS, answerTo, clearAnswer, isCached, linkTo, questionOf } from "./query.js";
import { row } from "./result.js";
import { signalsOf } from "./signals.js";
import { nextSteps, summary } from "./verdict.js";

let params, form, answerBox, side, running;
let picked = [];

export const search = { title: "Search", open, update, close, keys: { ...moveKeys(() => names()), c: pickFocused, Escape: closePanel } };

async function open(main, given) {
  form = queryForm();
  answerBox = h("section", { "aria-label": "Shortlist", class: "answer" });
  side = h("div", { class: "side" });
  fill(main, h("h1", { class: "unseen" }, "Search"), form, h("div", { class: "with-side" }, answerBox, side));
  picked = [];
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
    await showHome(signal);
    return;
  }
  if (!isCached(question)) {
    picked = [];
    answerBox.setAttribute("aria-busy", "true");
  }
  try {
    const known = isCached(question) && answerBox.dataset.shown === JSON.stringify(question);
    const answer = await answerTo(question, { signal });
    if (!known) show(question, answer);
    await panel.show(side, params.get("open"), { words: wordsOf(answer, params.get("open")), away: closePanel, signal });
  } catch (error) {
    if (error.name === "AbortError") return;
    delete answerBox.dataset.shown;
    fill(answerBox, errorNotice(error));
    say(error.message);
  } finally {
    if (!signal.aborted) answerBox.removeAttribute("aria-busy");
  }
}

function queryForm() {
  const kinds = h(
    "fieldset",
    { class: "kinds" },
    h("legend", {}, "Kinds"),
    KINDS.map((kind) => h("label", { class: "chip" }, h("input", { type: "checkbox", name: "kind", value: kind, onchange: ask }), kind)),
  );
  return h(
    "form",
    { class: "ask", role: "search", onsubmit: submit },
    h("label", { class: "query" }, h("span", {}, "What do you need to do?"),
      h("input", { type: "search", name: "q", maxlength: 2000, autocomplete: "off", placeholder: "refund a customer's card payment", enterkeyhint: "search" })),
    h("button", { class: "main" }, "Find"),
    h("div", { class: "filters" }, kinds,
      h("label", { class: "chip", title: "Cut a request for several things at its clauses" }, h("input", { type: "checkbox", name: "parts", onchange: ask }), "In parts"),
      h("label", { class: "namespace" }, h("span", {}, "Namespace"), h("input", { name: "ns", autocomplete: "off", spellcheck: "false", placeholder: "com.acme", onchange: ask }))),
  );
}

function fillForm() {
  const { q, ns } = form.elements;
  setText(q, params.get("q") ?? "");
  setText(ns, params.getAll("ns").join(", "));
  const kinds = params.getAll("kind");
  for (const box of form.querySelectorAll("[name=kind]")) box.checked = kinds.includes(box.value);
  form.elements.parts.checked = params.get("parts") === "1";
}

/** Set the text of a box, unless it is equal: that would move the cursor. */
function setText(field, text) {
  if (field.value.trim() !== text.trim()) field.value = text;
}

function submit(event) {
  event.preventDefault();
  ask();
}

/** Put the form into the address; the same query again is sent again. */
function ask() {
  const { q, ns, parts } = form.elements;
  const kinds = [...form.querySelectorAll("[name=kind]:checked")].map((box) => box.value);
  const next = linkTo("search", "", { q: q.value.trim(), parts: parts.checked ? "1" : undefined, kind: kinds, ns: ns.value.split(",").map((one) => one.trim()) });
  if (next !== linkTo("search", params)) location.hash = next;
  else if (questionOf(params)) {
    clearAnswer();
    update(params);
  }
}

/** The home page; without an answer of the service, only the examples. */
async function showHome(signal) {
  if (answerBox.dataset.shown) fill(answerBox);
  delete answerBox.dataset.shown;
  try {
    fill(answerBox, await home(signal));
  } catch (error) {
    if (error.name !== "AbortError") fill(answerBox, welcome());
  }
}

function errorNotice(error) {
  const faults = error.errors?.map(({ field, message }) => h("li", {}, field && h("code", {}, field), field && " ", message)) ?? [];
  return h("div", { class: "notice bad" }, h("p", {}, error.message), faults.length > 0 && h("ul", {}, faults));
}

function wordsOf(answer, id) {
  const result = answer.results.find((one) => one.id === id);
  return new Set(result?.why?.spelled ?? []);
}

function show(question, answer) {
  const { results, thresholds, verdict, degraded } = answer;
  const around = { signals: signalsOf(results, answer.base), weights: answer.base, mixed: results.some(({ enriched }) => enriched), link, pick: pickBox };
  const places = new Map(results.map((result, i) => [result, i + 1]));
  const rows = (some) => h("ol", { class: "shortlist" }, some.map((result) => row(result, places.get(result), around)));
  const [relevant, others] = split(results, thresholds?.weak ?? 0, verdict);
  answerBox.dataset.shown = JSON.stringify(question);
  fill(
    answerBox,
    summary(answer),
    partList(answer),
    relevant.length > 0 && rows(relevant),
    verdict === "none" && nextSteps(params),
    others.length > 0 && h("details", { class: "others" }, h("summary", {}, `${others.length} less relevant`), rows(others)),
    results.length > 0 && compareLink(),
  );
  say(`${verdict}: ${plural(relevant.length, "result")}${others.length ? `, ${others.length} less relevant` : ""}${degraded.length ? `, without ${degraded.join(", ")}` : ""}`);
}

/** The results of at least this relevance, or the nearest three, and the others; all if the verdict doubts the threshold. */
function split(results, weak, verdict) {
  if (verdict === "none") return [results.slice(0, 3), results.slice(3)];
  const relevant = results.filter(({ relevance }) => relevance >= weak);
  return relevant.length > 0 ? [relevant, results.filter(({ relevance }) => relevance < weak)] : [results, []];
}

/** The parts of a request for several things, each with its verdict and the results that serve it. */
function partList({ parts, results }) {
  if (!parts) return null;
  const places = new Map(results.map(({ id, name }, i) => [id, [i + 1, name]]));
  const serving = ({ id }, i) => [i > 0 && ", ", h("a", { href: linkTo("search", params, { open: id }), "data-id": id, onclick: openHere }, places.get(id).join(" "))];
  return h("ul", { class: "parts", "aria-label": "Parts" }, parts.map((part) =>
    h("li", {}, h("q", {}, part.text), " ", h("span", { class: `verdict ${part.verdict ?? "none"}` }, h("strong", {}, part.verdict ?? "not searched")), " ", part.results.map(serving))));
}

function link({ id }) {
  return { href: linkTo("search", params, { open: id }), "data-id": id, onclick: openHere };
}

function pickBox({ id }) {
  return { "data-pick": id, checked: picked.includes(id), onchange: (event) => pick(id, event.target.checked) };
}

/** Update a result's link before it is followed: it opens the panel without changing the other parameters. */
function openHere(event) {
  event.currentTarget.href = linkTo("search", params, { open: event.currentTarget.dataset.id });
}

function closePanel() {
  return panel.leave("search", params);
}

function names() {
  return [...answerBox.querySelectorAll("a.name")].filter((name) => name.checkVisibility());
}

/** The ids of all results, best first. */
function places() {
  const rows = [...answerBox.querySelectorAll("li.result")].sort((one, other) => one.value - other.value);
  return rows.map((one) => one.querySelector("a.name").dataset.id);
}

function pickFocused() {
  const box = document.activeElement.closest(".card")?.querySelector("[data-pick]");
  box?.click();
  return Boolean(box);
}

/** Pick at most two results: a third replaces the first. */
function pick(id, isPicked) {
  picked = [...picked.filter((one) => one !== id), ...(isPicked ? [id] : [])].slice(-2);
  for (const box of answerBox.querySelectorAll("[data-pick]")) box.checked = picked.includes(box.dataset.pick);
  answerBox.querySelector(".comparing").replaceWith(compareLink());
  if (picked.length === 2) say("Two are picked; the link at the end of the list compares them");
}

function compareLink() {
  if (picked.length < 2) return h("p", { class: "comparing hint" }, picked.length ? "Pick one more to compare." : "Pick two to see why one ranks above the other.");
  const order = places();
  const [a, b] = [...picked].sort((one, other) => order.indexOf(one) - order.indexOf(other));
  return h("p", { class: "comparing" }, h("a", { class: "button main", href: linkTo("compare", params, { a, b, open: undefined }) }, `Why is ${order.indexOf(a) + 1} above ${order.indexOf(b) + 1}?`));
}
