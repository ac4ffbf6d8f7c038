// The fields of a registration: how each is written, and read.

import { h } from "./dom.js";
import { KINDS } from "./query.js";

const line = (more) => (attributes) => h("input", { autocomplete: "off", spellcheck: "false", ...more, ...attributes });
const area = (rows, more) => (attributes) => h("textarea", { rows, ...more, ...attributes });
const choice = (values) => (attributes) => h("select", { ...attributes, readonly: undefined }, values.map((value) => h("option", { value }, value || "choose")));

const text = { read: (value) => value.trim(), show: (value) => String(value) };
const words = listed(",", ", ");
const lines = listed("\n", "\n");
const json = { read: (value) => JSON.parse(value), show: (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2)) };

/** A list as people write it; as JSON where an entry holds what stands between entries, so that none comes apart. */
function listed(between, joint) {
  return {
    read(value) {
      const parts = value.trim().startsWith("[") ? JSON.parse(value) : value.split(between);
      return parts.map((one) => (typeof one === "string" ? one.trim() : one)).filter((one) => one !== "");
    },
    show(value) {
      const parts = [value].flat();
      const plain = parts.every((one) => typeof one === "string" && !one.includes(between) && !one.includes("\n") && !one.startsWith("["));
      return plain ? parts.join(joint) : JSON.stringify(parts);
    },
  };
}

/** In the order of the form; those with `more` are folded away. */
export const FIELDS = [
  { name: "namespace", label: "Namespace", hint: "Dot-separated labels, such as com.acme.", required: true, make: line(), ...text },
  { name: "name", label: "Name", hint: "With the namespace, its id.", required: true, make: line(), ...text },
  { name: "kind", label: "Kind", hint: "It cannot change under an id.", required: true, make: choice(["", ...KINDS]), ...text },
  { name: "description", label: "Description", hint: "What it does and for whom, in the words of those who need it.", make: area(4), ...text },
  { name: "examples", label: "Examples", hint: "Requests it serves, one per line, as a user would type them.", make: area(3), ...lines },
  { name: "provider", label: "Provider", hint: "Who runs it.", make: line(), ...text },
  { name: "tags", label: "Tags", hint: "Comma-separated.", make: line(), ...words },
  { name: "type_tags", label: "Types", hint: "Types of capability, such as payments; comma-separated.", make: line(), ...words },
  { name: "endpoint", label: "Endpoint", hint: "Address or ARN.", make: line(), ...text },
  { name: "input_schema", label: "Input schema", hint: "JSON Schema of its input; names and descriptions in it are searched, too.", make: area(5, { spellcheck: "false", class: "code" }), ...json },
  { name: "negative_examples", label: "Negative examples", hint: "Requests that another capability serves better, one per line.", more: true, make: area(2), ...lines },
  { name: "version", label: "Version", hint: "The owner's version number.", more: true, make: line(), ...text },
  { name: "lifecycle", label: "Lifecycle", hint: "Deprecated capabilities are still found, and marked.", more: true, make: choice(["active", "deprecated"]), ...text },
  { name: "visible_to", label: "Visible to", hint: "Audiences, comma-separated; empty: everyone.", more: true, make: line(), ...words },
  { name: "descriptor", label: "Descriptor", hint: "The raw MCP, A2A, OpenAPI or skill object, as JSON.", more: true, make: area(4, { spellcheck: "false", class: "code" }), ...json },
];

/** The item a form says, without what is empty, and what cannot be read of it. */
export function itemOf(form) {
  const item = {};
  const faults = [];
  for (const { name, read } of FIELDS) {
    const { value } = form.elements[name];
    if (form.kept?.get(name)?.text === value) {
      item[name] = form.kept.get(name).value;
      continue;
    }
    if (!value.trim() || (name === "lifecycle" && value === "active")) continue;
    try {
      item[name] = read(value);
    } catch (error) {
      faults.push({ field: name, message: `is not JSON: ${error.message}` });
    }
  }
  return { item, faults };
}

/** Put an item into a form. What nobody touches there stays as it is, even where a field cannot hold all of it. */
export function spread(form, item) {
  form.kept = new Map();
  for (const { name, show } of FIELDS) {
    const field = form.elements[name];
    field.value = item[name] === undefined || item[name] === null ? (name === "lifecycle" ? "active" : "") : show(item[name]);
    if (item[name] !== undefined && item[name] !== null) form.kept.set(name, { text: field.value, value: item[name] });
  }
  const more = FIELDS.some((field) => field.more && item[field.name] !== undefined && item[field.name] !== null);
  form.querySelector("details.more").open = more;
}
