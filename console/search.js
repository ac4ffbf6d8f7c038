// The search page: a query, the shortlist, and the reasons of each result.

import { h, fill, markWords, plural, say, score } from "./dom.js";
import { moveKeys } from "./keys.js";
import * as panel from "./panel.js";
import { KINDS, answerTo, clearAnswer, isCached, linkTo, questionOf } from "./query.js";
import { list, signalsOf, stack } from "./signals.js";
import { summary } from "./verdict.js";

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
    fill(answerBox, welcome());
    panel.close(side);
    form.elements.q.focus({ preventScroll: true });
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
    h("label", { class: "query" }, h("span", {}, "What do you want to do?"),
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

function welcome() {
  const tries = ["refund a customer's card payment", "turn a street address into coordinates", "summarise a long contract"];
  delete answerBox.dataset.shown;
  return h(
    "div",
    { class: "welcome" },
    h("p", {}, "Describe the task in your own words. The shortlist shows which models, agents, tools and skills fit, and why. Nothing is invoked."),
    h("ul", { class: "plain" }, tries.map((q) => h("li", {}, h("a", { href: linkTo("search", "", { q }) }, q)))),
  );
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
  const around = { signals: signalsOf(answer.results, answer.base), weights: answer.base, mixed: answer.results.some(({ enriched }) => enriched) };
  answerBox.dataset.shown = JSON.stringify(question);
  fill(
    answerBox,
    summary(answer),
    partList(answer),
    answer.results.length > 0 && h("ol", { class: "shortlist" }, answer.results.map((result, i) => card(result, i + 1, around))),
    compareLink(),
  );
  say(`${answer.verdict}: ${plural(answer.results.length, "result")}${answer.degraded.length ? `, without ${answer.degraded.join(", ")}` : ""}`);
}

/** The parts of a request for several things, each with its verdict and the results that serve it. */
function partList({ parts, results }) {
  if (!parts) return null;
  const places = new Map(results.map(({ id, name }, i) => [id, [i + 1, name]]));
  const serving = ({ id }, i) => [i > 0 && ", ", h("a", { href: linkTo("search", params, { open: id }), "data-id": id, onclick: openHere }, places.get(id).join(" "))];
  return h("ul", { class: "parts", "aria-label": "Parts" }, parts.map((part) =>
    h("li", {}, h("q", {}, part.text), " ", h("span", { class: `verdict ${part.verdict ?? "none"}` }, h("strong", {}, part.verdict ?? "not searched")), " ", part.results.map(serving))));
}

function card(result, place, { signals, weights, mixed }) {
  const words = new Set(result.why?.spelled ?? []);
  return h(
    "li",
    { class: "card" },
    h("div", { class: "head" },
      h("span", { class: "place", "aria-hidden": "true" }, place),
      h("h2", {}, h("a", { class: "name", href: linkTo("search", params, { open: result.id }), "data-id": result.id, onclick: openHere }, markWords(result.name, words))),
      stack(result, signals)),
    h("p", { class: "about" }, h("span", { class: `kind ${result.kind}` }, result.kind), h("span", { class: "where" }, markWords(result.namespace, words)),
      result.provider && h("span", {}, "by ", markWords(result.provider, words)), result.version && h("span", {}, `version ${result.version}`), flags(result, mixed)),
    result.summary ? h("p", { class: "summary" }, markWords(result.summary, words)) : h("p", { class: "summary none" }, "No description."),
    h("p", { class: "why" }, matchedWords(result.why)),
    list(result, signals, weights),
    h("label", { class: "pick" }, h("input", { type: "checkbox", "data-pick": result.id, checked: picked.includes(result.id), onchange: (event) => pick(result.id, event.target.checked) }), "Compare", h("span", { class: "unseen" }, ` ${result.name}`)),
  );
}

/** Warnings: deprecated, not enriched, suspicious. */
function flags(result, mixed) {
  return [
    result.lifecycle === "deprecated" && h("span", { class: "flag" }, "deprecated"),
    mixed && !result.enriched && h("span", { class: "flag quiet", title: "Not enriched by an LLM: shown as registered." }, "as registered"),
    result.suspicious.map((reason) => h("span", { class: "flag bad" }, `suspicious: its text ${reason}`)),
  ];
}

function matchedWords(why) {
  if (!why?.matched.length) return "No matching words: found by meaning alone.";
  const fields = why.fields.map((field) => field.replaceAll("_", " ")).join(", ");
  return ["Matched ", why.matched.map((word, i) => [i > 0 && ", ", h("mark", {}, word)]), ` in ${fields}.`];
}

/** Update a result's link before it is followed: it opens the panel without changing the other parameters. */
function openHere(event) {
  event.currentTarget.href = linkTo("search", params, { open: event.currentTarget.dataset.id });
}

function closePanel() {
  return panel.leave("search", params);
}

function names() {
  return [...answerBox.querySelectorAll("a.name")];
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
  const order = names().map((name) => name.dataset.id);
  const [a, b] = [...picked].sort((one, other) => order.indexOf(one) - order.indexOf(other));
  return h("p", { class: "comparing" }, h("a", { class: "button main", href: linkTo("compare", params, { a, b, open: undefined }) }, `Why is ${order.indexOf(a) + 1} above ${order.indexOf(b) + 1}?`));
}
