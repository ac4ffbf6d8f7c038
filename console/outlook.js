// What `mats preview` says of a registration, laid out.

import { coded, h, percent, score } from "./dom.js";
import { facts } from "./panel.js";
import { linkTo } from "./query.js";

const WEIGHTS = { must: "bad", should: "", could: "quiet" };

/** The report beside the form. */
export function outlook(told) {
  const { profile, queries, near_duplicates: twins, advice, without } = told;
  return [
    h("h2", { id: "outlook-title" }, "What would become of it"),
    h("h3", {}, advice.length ? "To mend" : "Nothing to mend"),
    advice.length > 0 && h("ul", { class: "advice" }, advice.map(({ flag, weight, what, fix }) => h("li", {}, h("span", { class: `flag ${WEIGHTS[weight] ?? ""}` }, `${weight}: ${flag}`), " ", coded(what), "; ", coded(fix), "."))),
    h("h3", {}, "Who finds it"),
    queries.length ? h("ul", { class: "prospects" }, queries.map(prospect)) : h("p", { class: "hint" }, "No query to try: it has no examples and says nothing that one could be made of."),
    twins.length > 0 && [h("h3", {}, "Much like it"), h("ul", {}, twins.map(twin))],
    h("h3", {}, "The profile it would get"),
    facts([
      ["described by", profile.described_by],
      ["summary", profile.summary],
      ["action", profile.action],
      ["keywords", profile.keywords.join(", ")],
      ["is asked for by", profile.positive_examples.length > 0 && h("ul", {}, profile.positive_examples.map((text) => h("li", {}, text)))],
      ["is not for", profile.negative_examples.length > 0 && h("ul", {}, profile.negative_examples.map((text) => h("li", {}, text)))],
      ["trust", profile.trust === null ? "none given" : `${profile.trust} of 100`],
    ]),
    h("details", {}, h("summary", {}, "What the encoder reads"), h("p", {}, profile.encoded_text)),
    without.map((reason) => h("p", { class: "hint" }, `Without ${reason}`)),
  ];
}

function prospect(one) {
  const place = one.place ? `place ${one.place} of ${one.looked_at}` : `not among the first ${one.looked_at}`;
  const aided = one.place_unaided === one.place ? "" : `; ${one.place_unaided ? `place ${one.place_unaided}` : "not among them"} without this example`;
  const rivals = one.outranked_by.map((rival) => h("li", { value: rival.place }, h("a", { href: linkTo("registry", "", { open: rival.id }), target: "_blank", rel: "noopener" }, rival.id), ` (${score(rival.score)}): ${rival.why.join("; ")}`));
  return h("li", {}, h("span", { class: `flag ${one.place === 1 ? "good" : one.place ? "" : "bad"}` }, place + aided), " ", h("q", {}, one.query), h("span", { class: "hint" }, ` ${one.origin}`),
    rivals.length > 0 && h("details", {}, h("summary", {}, "Who stands before it"), h("ol", {}, rivals)));
}

function twin({ id, cosine, overlap, description }) {
  const near = cosine === null ? "" : `cosine ${score(cosine)}, `;
  return h("li", {}, h("a", { href: linkTo("registry", "", { open: id }), target: "_blank", rel: "noopener" }, id), ` (${near}${percent(overlap)} of the words): ${description}`);
}
