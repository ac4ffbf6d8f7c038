// The page of imports: documents, what they would register, and registering it.

import { ask, hasRegistry, readOnlyNotice } from "./api.js";
import { count, fill, h, plural, say } from "./dom.js";
import { linkTo } from "./query.js";

const FORMATS = "Registrations (JSON or JSON Lines), an MCP server.json, tools/list result or mcpServers file, an A2A agent card, an ARD catalog, an OpenAPI 3 or Swagger 2 document, a tool list of OpenAI or Anthropic, a SKILL.md, a list of Bedrock's models.";

let running, text, namespace, files, report;

export const importer = { title: "Import", open, update: () => undefined, close: () => running.abort(), hasInput: true };

async function open(main) {
  running = new AbortController();
  if (!(await hasRegistry({ signal: running.signal }))) return void fill(main, readOnlyNotice("Import"));
  text = h("textarea", { id: "import-text", rows: 10, class: "code", spellcheck: "false", "aria-describedby": "import-formats" });
  namespace = h("input", { id: "import-namespace", autocomplete: "off", spellcheck: "false", placeholder: "com.acme" });
  files = h("input", { id: "import-files", type: "file", multiple: true, onchange: preview });
  report = h("section", { class: "card", "aria-label": "Preview" },
    h("p", { class: "hint" }, "What the documents would register, and what is rejected and why. Servers, registries and folders are imported with ", h("code", {}, "mats import"), " or ", h("code", {}, "mats source add"), "."));
  const form = h("form", { onsubmit: preview },
    field("import-text", "Document", text), h("p", { class: "hint", id: "import-formats" }, FORMATS),
    field("import-files", "Or files", files),
    field("import-namespace", "Namespace", namespace), h("p", { class: "hint" }, "Empty: the namespaces that the documents name."),
    h("p", { class: "row" }, h("button", { class: "main" }, "Preview"), h("span", { class: "hint" }, "Nothing is written.")));
  fill(main, h("h1", {}, "Import"), h("div", { class: "two" }, form, report));
}

function field(id, label, input) {
  return h("div", { class: "field" }, h("label", { for: id }, label), input);
}

async function preview(event) {
  event.preventDefault();
  const chosen = await Promise.all([...files.files].map(async (file) => ({ name: file.name.slice(0, 200), text: await file.text() })));
  const documents = [...chosen, ...(text.value.trim() ? [{ name: "pasted", text: text.value }] : [])];
  if (documents.length) return send({ documents, namespace: namespace.value.trim(), dry_run: true });
  fill(report, h("p", { class: "notice" }, "Nothing to import: paste a document or choose a file."));
  return text.focus();
}

async function send(body) {
  report.setAttribute("aria-busy", "true");
  try {
    show(await ask("registry/import", { method: "POST", body, signal: running.signal }), body);
  } catch (error) {
    if (error.name !== "AbortError") fill(report, h("p", { class: "notice bad", role: "alert" }, error.message));
  } finally {
    report.removeAttribute("aria-busy");
    report.scrollIntoView();
  }
}

function show({ dry_run: isDry, rows, new: added, changed, unchanged, rejected, rejections, notes, capabilities, more }, body) {
  const counts = `${count(added)} new, ${count(changed)} changed, ${count(unchanged)} unchanged, ${count(rejected)} rejected`;
  const size = added + changed;
  fill(report,
    h("h2", {}, isDry ? "Preview of this import" : "Imported"),
    h("p", {}, `${plural(rows, "capability", "capabilities")}: ${counts}.`),
    isDry && size > 0 && h("button", { type: "button", class: "main", onclick: () => send({ ...body, dry_run: false }) }, `Register ${plural(size, "capability", "capabilities")}`),
    !isDry && h("a", { href: linkTo("registry", "", { sort: "-updated" }) }, "See the latest in the registry"),
    remarks("Rejected", rejections), remarks("Notes", notes),
    h("ul", { class: "rows" }, capabilities.map(({ id, kind, description, placed, callable }) =>
      h("li", {}, h("strong", { class: "name" }, id), h("span", { class: "about" }, h("span", { class: "kind" }, kind), h("span", { class: "flag quiet" }, placed), !callable && h("span", { class: "flag" }, "nothing says how to call it")),
        description && h("span", { class: "summary" }, description.slice(0, 300))))),
    more > 0 && h("p", {}, `${count(more)} more are not shown.`));
  say(`${isDry ? "Preview" : "Imported"}: ${counts}`);
}

function remarks(title, found) {
  return found.length > 0 && h("details", { open: true }, h("summary", {}, `${title}: ${count(found.length)}`), h("ul", {}, found.map(({ place, text: why }) => h("li", {}, `${place}: ${why}`))));
}
