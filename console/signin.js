// Sign in with an OpenID Connect issuer (authorization code with PKCE), or by pasting a token. The token is stored for
// the lifetime of the tab.

import { SIGN_IN, ask, token } from "./api.js";
import { say } from "./dom.js";

const PENDING = "mats.sign-in";
const CODE = /[?&](code|error)=/;
const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]); // elsewhere a link could sign one in as somebody else

/** Sign in; whether there is a token. With an issuer, the browser leaves the page and `finishSignIn` continues. */
export async function signIn() {
  try {
    const { signIn: settings } = await ask("console/config.json");
    return settings ? await redirectToIssuer(settings) : pasteToken();
  } catch (error) {
    return pasteToken(`The issuer does not answer (${error.message}).`);
  }
}

/** Delete the token. */
export function signOut() {
  token.set(null);
  say("Signed out");
}

/** Take the token out of an address that `mats serve` has printed; true if there was one. */
export function signInByLink() {
  const linked = LOOPBACK.has(location.hostname) && /^#token=([\w-]+)$/.exec(location.hash);
  if (!linked) return false;
  token.set(linked[1]);
  history.replaceState(null, "", location.pathname);
  return true;
}

/** Complete signing in after the issuer's redirect, if there was one; the problem, or an empty text. */
export async function finishSignIn() {
  const pending = JSON.parse(sessionStorage.getItem(PENDING) ?? "null");
  if (!pending || !CODE.test(location.search)) return "";
  sessionStorage.removeItem(PENDING);
  const answer = new URLSearchParams(location.search);
  history.replaceState(null, "", `${location.pathname}${pending.hash}`);
  if (answer.get("state") !== pending.state || !answer.get("code")) {
    return `Signing in did not work: ${answer.get("error_description") ?? answer.get("error") ?? "the answer is not to this request"}`;
  }
  try {
    token.set(await exchangeCode(pending, answer.get("code")));
    return "";
  } catch (error) {
    return `Signing in did not work: ${error.message}`;
  }
}

/** The token for a code: the one with our audience, if there are two; the service verifies it. */
async function exchangeCode({ tokens, back, client, verifier, audience }, code) {
  const form = { grant_type: "authorization_code", code, redirect_uri: back, client_id: client, code_verifier: verifier };
  const response = await fetch(tokens, { method: "POST", body: new URLSearchParams(form) });
  const given = await response.json();
  if (!given.access_token) throw new Error(given.error_description ?? given.error ?? `the issuer answered ${response.status}`);
  return [given.access_token, given.id_token].find((one) => audiences(one).includes(audience)) ?? given.access_token;
}

async function redirectToIssuer({ issuer, clientId, audience }) {
  const found = await fetch(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  const { authorization_endpoint: page, token_endpoint: tokens } = await found.json();
  const [verifier, state] = [secret(), secret()];
  const back = `${location.origin}${location.pathname}`;
  sessionStorage.setItem(PENDING, JSON.stringify({ verifier, state, tokens, back, client: clientId, audience, hash: location.hash }));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const query = new URLSearchParams({
    response_type: "code",
    client_id: clientId,
    redirect_uri: back,
    scope: "openid",
    audience,
    state,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
  });
  location.assign(`${page}${page.includes("?") ? "&" : "?"}${query}`);
  return false;
}

/** The audiences in a token, not verified; some issuers name them in the id token only. */
function audiences(token) {
  try {
    return [JSON.parse(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"))).aud].flat();
  } catch {
    return [];
  }
}

function secret() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Why the service does not know the token; empty if it does. Reading may need none, so a preview is asked for. */
async function refusal() {
  try {
    await ask("registry/preview", { method: "POST", body: { namespace: "mats", name: "sign-in", kind: "tool" } });
  } catch (error) {
    if (error.status === 401) return error.message.replace(SIGN_IN, "").replace(/: send (.*) as Authorization: Bearer/, ": paste $1");
  }
  return "";
}

/** Ask for a token in the dialog of the page; whether one was given. */
function pasteToken(problem = "") {
  const dialog = document.getElementById("sign-in");
  const field = dialog.querySelector("input");
  dialog.querySelector("[role=alert]").textContent = problem;
  dialog.returnValue = field.value = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", async () => {
    const given = dialog.returnValue === "in" ? field.value.trim().replace(/^Bearer\s+/i, "") : "";
    if (!given) return resolve(false);
    token.set(given);
    const refused = await refusal();
    if (refused) token.set(null);
    resolve(refused ? pasteToken(refused) : true);
  }, { once: true }));
}
