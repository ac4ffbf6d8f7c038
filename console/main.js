// Routes are in the hash, so that every view has an address and a static host is enough.

import { onRefusal, token } from "./api.js";
import { h, fill, say } from "./dom.js";
import * as keys from "./keys.js";
import { signIn, signOut, returned } from "./signin.js";
import { compare } from "./compare.js";
import { editor } from "./editor.js";
import { evaluation } from "./evaluation.js";
import { forget } from "./query.js";
import { registry } from "./registry.js";
import { search } from "./search.js";
import { theme } from "./theme.js";

/**
 * A page: its title, `open(main, params)` that fills the main element, `update(params)` when only the parameters
 * changed, `close()` when another page comes (false keeps this one open), and its own keys.
 */
const PAGES = { search, compare, registry, edit: editor, evaluation };
const NAMED = { compare: "search", edit: "registry" };

const main = document.getElementById("main");
let shown = null;

/** Where the hash points: the page's name, and its parameters. */
function place() {
  const [name, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { name: Object.hasOwn(PAGES, name) ? name : "search", params: new URLSearchParams(query) };
}

let last = location.hash;

async function route() {
  const address = location.hash;
  const { name, params } = place();
  const page = PAGES[name];
  const before = last;
  if (shown !== null && shown !== page && shown.close?.() === false) return void stay(before);
  last = address;
  for (const link of document.querySelectorAll("nav [data-page]")) {
    if (link.dataset.page === (NAMED[name] ?? name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    if (shown === page) {
      if ((await page.update(params)) === false) return void stay(before);
    } else {
      const moved = shown !== null;
      shown = page;
      fill(main);
      document.title = `${page.title} · mats`;
      await page.open(main, params);
      if (moved && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
      if (moved) scrollTo(0, 0);
    }
    if (location.hash === address) main.dataset.shown = address; // all of it is there: for those who wait
  } catch (error) {
    if (error.name === "AbortError") return;
    failed(error);
  }
}

/** The page shown wants to stay, for something there is not saved. */
function stay(address) {
  last = address;
  history.replaceState(null, "", address || location.pathname);
}

function failed(error) {
  const what = error.status === undefined ? `Internal error of the console: ${error.message}` : error.message;
  fill(main, h("div", { class: "notice bad", role: "alert" }, h("p", {}, what), retry()));
  shown = null;
  main.dataset.shown = location.hash;
  say(what);
  if (error.status === undefined) console.error(error);
}

function retry() {
  return h("button", { type: "button", onclick: () => route() }, "Try again");
}

async function sign() {
  if (token.get()) signOut();
  else if (!(await signIn())) return;
  forget();
  showSign(true);
  shown = null;
  await route();
}

const button = document.getElementById("sign");

function showSign(wanted) {
  button.hidden = !(wanted || token.get());
  button.textContent = token.get() ? "Sign out" : "Sign in";
}

button.addEventListener("click", sign);
onRefusal(() => {
  token.set(null);
  showSign(true);
});
theme(document.getElementById("theme"));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // its address is no page's
  main.focus();
});
keys.listen(() => shown?.keys ?? {});
addEventListener("hashchange", route);
const trouble = await returned();
showSign(Boolean(trouble));
await route();
if (trouble) main.prepend(h("p", { class: "notice bad", role: "alert" }, trouble));
