// The report of `mats preview` for one registration.

import { facts, h, percent, score, withCode } from "./dom.js";
import { linkTo } from "./query.js";

const WEIGHTS = { must: "bad", should: "", could: "quiet" };

/** The report beside the form. */
export function previewReport(report) {
  const { profile, queries, near_duplicates: duplicates, advice, without } = report;
  return [
    h("h2", { id: "preview-title" }, "Preview of this registration"),
    h("h3", {}, advice.length ? "Suggestions" : "No suggestions"),
    advice.length > 0 && h("ul", {}, advice.map(({ flag, weight, what: problem, fix }) => h("li", {}, h("span", { class: `flag ${WEIGHTS[weight] ?? ""}` }, `${weight}: ${flag}`), " ", withCode(problem), "; ", withCode(fix), "."))),
    h("h3", {}, "Queries that should find it"),
    queries.length ? h("ul", {}, queries.map(queryReport)) : h("p", { class: "hint" }, "No query to try: it has no examples, and its text is too short to derive one."),
    duplicates.length > 0 && [h("h3", {}, "Near-duplicates"), h("ul", {}, duplicates.map(duplicate))],
    h("h3", {}, "Its profile"),
    facts([
      ["described by", profile.described_by],
      ["summary", profile.summary],
      ["action", profile.action],
      ["keywords", profile.keywords.join(", ")],
      ["example requests", profile.positive_examples.length > 0 && h("ul", {}, profile.positive_examples.map((text) => h("li", {}, text)))],
      ["don't use for", profile.negative_examples.length > 0 && h("ul", {}, profile.negative_examples.map((text) => h("li", {}, text)))],
      ["trust", profile.trust === null ? "none given" : `${profile.trust} of 100`],
    ]),
    h("details", {}, h("summary", {}, "Text for the encoder"), h("p", {}, profile.encoded_text)),
    without.map((reason) => h("p", { class: "hint" }, `Without ${reason}`)),
  ];
}

function queryReport(one) {
  const place = one.place ? `place ${one.place} of ${one.looked_at}` : `not among the first ${one.looked_at}`;
  const aided = one.place_unaided === one.place ? "" : `; ${one.place_unaided ? `place ${one.place_unaided}` : "not among them"} without this example`;
  const competitors = one.outranked_by.map((competitor) => h("li", { value: competitor.place }, h("a", { href: linkTo("registry", "", { open: competitor.id }), target: "_blank", rel: "noopener" }, competitor.id), ` (${score(competitor.score)}): ${competitor.why.join("; ")}`));
  return h("li", {}, h("span", { class: `flag ${one.place === 1 ? "good" : one.place ? "" : "bad"}` }, place + aided), " ", h("q", {}, one.query), h("span", { class: "hint" }, ` ${one.origin}`),
    competitors.length > 0 && h("details", {}, h("summary", {}, "Ranked above it"), h("ol", {}, competitors)));
}

function duplicate({ id, cosine, overlap, description }) {
  const near = cosine === null ? "" : `cosine ${score(cosine)}, `;
  return h("li", {}, h("a", { href: linkTo("registry", "", { open: id }), target: "_blank", rel: "noopener" }, id), ` (${near}${percent(overlap)} of the words): ${description}`);
}
