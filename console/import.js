// The page of imports: documents that are pasted or dropped, what they would register, and registering it.

import { ask, hasRegistry } from "./api.js";
import { count, fill, h, plural, say } from "./dom.js";
import { notHere } from "./page.js";
import { previewReport } from "./preview.js";
import { linkTo } from "./query.js";

const FORMATS = "Registrations (JSON or JSON Lines), an MCP server.json, tools/list result or mcpServers file, an A2A agent card, an ARD catalog, an OpenAPI 3 or Swagger 2 document, a tool list of OpenAI or Anthropic, a SKILL.md, a list of Bedrock's models.";

let running, text, namespace, chosen, report, box;

export const importer = { title: "Import", open, update: () => undefined, close: () => running.abort(), keys: {}, hasInput: true };

async function open(main) {
  running = new AbortController();
  if (!(await hasRegistry({ signal: running.signal }))) return void fill(main, notHere("Import", "mats import"));
  chosen = [];
  text = h("textarea", { id: "import-text", rows: 10, class: "code", spellcheck: "false", "aria-describedby": "import-formats", placeholder: "Paste a document, or drop files here" });
  namespace = h("input", { id: "import-namespace", autocomplete: "off", spellcheck: "false", placeholder: "com.acme" });
  const files = h("input", { id: "import-files", type: "file", multiple: true, onchange: () => take(files.files) });
  report = h("section", { class: "listing", "aria-label": "Preview" });
  box = h("form", { class: "editor drop", onsubmit: preview, ondragover: allow, ondragleave: () => box.classList.remove("over"), ondrop: drop },
    field("import-text", "Document", text), h("p", { class: "hint", id: "import-formats" }, FORMATS),
    field("import-files", "Or files", files),
    field("import-namespace", "Namespace", namespace), h("p", { class: "hint" }, "Empty: the namespaces that the documents name."),
    h("p", { class: "row" }, h("button", { class: "main" }, "Preview"), h("span", { class: "hint" }, "Nothing is written.")));
  fill(main, h("p", {}, h("a", { href: "#/registry" }, "← The registry")), h("h1", {}, "Import"), h("div", { class: "two editing" }, box, report));
  fill(report, h("p", { class: "hint" }, "The preview shows what the documents would register, what is rejected and why, and the queries that would find it. Servers, registries and folders are imported with ", h("code", {}, "mats import"), " or ", h("code", {}, "mats source add"), "."));
}

function field(id, label, input) {
  return h("div", { class: "field" }, h("label", { for: id }, label), input);
}

function allow(event) {
  if (![...event.dataTransfer.types].includes("Files")) return;
  event.preventDefault();
  box.classList.add("over");
}

function drop(event) {
  box.classList.remove("over");
  if (!event.dataTransfer.files.length) return; // text goes into the box by itself
  event.preventDefault();
  take(event.dataTransfer.files);
}

async function take(files) {
  chosen = await Promise.all([...files].map(async (file) => ({ name: file.name.slice(0, 200), text: await file.text() })));
  await preview();
}

function documents() {
  return [...chosen, ...(text.value.trim() ? [{ name: "pasted", text: text.value }] : [])];
}

async function preview(event) {
  event?.preventDefault();
  const body = { documents: documents(), namespace: namespace.value.trim() };
  if (!body.documents.length) {
    fill(report, h("p", { class: "notice" }, "Nothing to import: paste a document or choose a file."));
    return text.focus();
  }
  return send({ ...body, dry_run: true });
}

async function send(body) {
  report.setAttribute("aria-busy", "true");
  try {
    const found = await ask("registry/import", { method: "POST", body, signal: running.signal });
    show(found, body);
  } catch (error) {
    if (error.name === "AbortError") return;
    fill(report, h("p", { class: "notice bad", role: "alert" }, error.message), h("ul", {}, (error.errors ?? []).map(({ field: name, message }) => h("li", {}, name, " ", message))));
  } finally {
    report.removeAttribute("aria-busy");
  }
}

function show(found, body) {
  const { dry_run: isDry, new: added, changed, unchanged, rejected, capabilities, more } = found;
  const counts = `${count(added)} new, ${count(changed)} changed, ${count(unchanged)} unchanged, ${count(rejected)} rejected`;
  const size = added + changed;
  fill(report,
    h("h2", {}, isDry ? "Preview of this import" : "Imported"),
    h("p", {}, `${plural(found.rows, "capability", "capabilities")}: ${counts}.`, !isDry && " They are findable in a moment."),
    isDry && size > 0 && h("p", { class: "row" }, h("button", { type: "button", class: "main", onclick: () => send({ ...body, dry_run: false }) }, `Register ${plural(size, "capability", "capabilities")}`)),
    !isDry && h("p", {}, h("a", { href: linkTo("registry", "", { sort: "-updated" }) }, "See the latest in the registry")),
    remarks("Rejected", found.rejections, "bad"), remarks("Notes", found.notes, ""),
    capabilities.length > 0 && [h("h3", {}, "What it registers"), h("ul", { class: "rows" }, capabilities.map(capability))],
    more > 0 && h("p", { class: "foot" }, `${count(more)} more are not shown.`));
  say(`${isDry ? "Preview" : "Imported"}: ${counts}`);
}

function remarks(title, found, kind) {
  return found.length > 0 && h("details", { open: kind === "bad" }, h("summary", {}, `${title}: ${count(found.length)}`), h("ul", {}, found.map(({ place, text: why }) => h("li", { class: kind }, `${place}: ${why}`))));
}

function capability({ id, kind, description, placed, callable, item }) {
  const inside = h("div", {}, h("p", { class: "hint" }, "Loading…"));
  return h("li", {}, h("strong", { class: "name" }, id), h("span", { class: "about" }, h("span", { class: `kind ${kind}` }, kind), h("span", { class: "flag quiet" }, placed), !callable && h("span", { class: "flag" }, "nothing says how to call it")),
    description && h("span", { class: "summary" }, description.slice(0, 300)),
    h("details", { ontoggle: load }, h("summary", {}, "Queries that find it", h("span", { class: "unseen" }, ` ${id}`)), inside));

  async function load(event) {
    if (!event.currentTarget.open || inside.dataset.loaded) return;
    inside.dataset.loaded = "yes";
    try {
      const made = await ask("registry/preview", { method: "POST", body: item, signal: running.signal });
      fill(inside, previewReport(made, ""));
    } catch (error) {
      if (error.name !== "AbortError") fill(inside, h("p", { class: "notice bad" }, error.message));
    }
  }
}
