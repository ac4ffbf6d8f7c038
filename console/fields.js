// The fields of a registration: input, parser and formatter of each.

import { h } from "./dom.js";
import { KINDS } from "./query.js";

const line = (more) => (attributes) => h("input", { autocomplete: "off", spellcheck: "false", ...more, ...attributes });
const area = (rows, more) => (attributes) => h("textarea", { rows, ...more, ...attributes });
const choice = (values) => (attributes) => h("select", { ...attributes, readonly: undefined }, values.map((value) => h("option", { value }, value || "choose")));

const text = { read: (value) => value.trim(), show: (value) => String(value) };
const words = listOf(",", ", ");
const lines = listOf("\n", "\n");
const json = { read: (value) => JSON.parse(value), show: (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2)) };

/** A list of texts with a separator; as JSON if an entry contains the separator. */
function listOf(separator, joint) {
  return {
    read(value) {
      const parts = value.trim().startsWith("[") ? JSON.parse(value) : value.split(separator);
      return parts.map((one) => (typeof one === "string" ? one.trim() : one)).filter((one) => one !== "");
    },
    show(value) {
      const parts = [value].flat();
      const plain = parts.every((one) => typeof one === "string" && !one.includes(separator) && !one.includes("\n") && !one.startsWith("["));
      return plain ? parts.join(joint) : JSON.stringify(parts);
    },
  };
}

/** In the order of the form; those with `more` are collapsed. */
export const FIELDS = [
  { name: "namespace", label: "Namespace", hint: "Dot-separated labels, such as com.acme.", required: true, make: line(), ...text },
  { name: "name", label: "Name", hint: "With the namespace, its id.", required: true, make: line(), ...text },
  { name: "kind", label: "Kind", hint: "It cannot change under an id.", required: true, make: choice(["", ...KINDS]), ...text },
  { name: "description", label: "Description", hint: "Its task and its users, in the words of a request.", make: area(4), ...text },
  { name: "examples", label: "Example requests", hint: "Requests that it serves, one per line, as a user would type them.", make: area(3), ...lines },
  { name: "provider", label: "Provider", hint: "Who runs it.", make: line(), ...text },
  { name: "tags", label: "Tags", hint: "Comma-separated.", make: line(), ...words },
  { name: "type_tags", label: "Types", hint: "Types of capability, such as payments; comma-separated.", make: line(), ...words },
  { name: "endpoint", label: "Endpoint", hint: "Address or ARN.", make: line(), ...text },
  { name: "input_schema", label: "Input schema", hint: "JSON Schema of its input; names and descriptions in it are searched, too.", make: area(5, { spellcheck: "false", class: "code" }), ...json },
  { name: "negative_examples", label: "Don't use for", hint: "Requests that another capability serves better, one per line.", more: true, make: area(2), ...lines },
  { name: "version", label: "Version", hint: "The owner's version number.", more: true, make: line(), ...text },
  { name: "lifecycle", label: "Lifecycle", hint: "Deprecated capabilities are still found, and marked.", more: true, make: choice(["active", "deprecated"]), ...text },
  { name: "visible_to", label: "Visible to", hint: "Audiences, comma-separated; empty: everyone.", more: true, make: line(), ...words },
  { name: "descriptor", label: "Descriptor", hint: "The raw MCP, A2A, OpenAPI or skill object, as JSON.", more: true, make: area(4, { spellcheck: "false", class: "code" }), ...json },
];

/** The item of a form, without empty fields, and the faults of fields that cannot be parsed. */
export function itemOf(form) {
  const item = {};
  const faults = [];
  for (const { name, read } of FIELDS) {
    const { value } = form.elements[name];
    if (form.unchanged?.get(name)?.text === value) {
      item[name] = form.unchanged.get(name).value;
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

/** Fill a form from an item. A field that is not edited retains its value, even if its text cannot represent it. */
export function fillFields(form, item) {
  form.unchanged = new Map();
  for (const { name, show } of FIELDS) {
    const field = form.elements[name];
    field.value = item[name] === undefined || item[name] === null ? (name === "lifecycle" ? "active" : "") : show(item[name]);
    if (item[name] !== undefined && item[name] !== null) form.unchanged.set(name, { text: field.value, value: item[name] });
  }
  const more = FIELDS.some((field) => field.more && item[field.name] !== undefined && item[field.name] !== null);
  form.querySelector("details").open = more;
}
