// Who is asking, where the service wants to know: an OpenID Connect issuer's page (authorization code with PKCE), or a
// token that is pasted. The token lives as long as the tab.

import { ask, token } from "./api.js";
import { h, say } from "./dom.js";

const BEGUN = "mats.sign-in";
const CODE = /[?&](code|error)=/;

/** Sign in; whether there is a token now. With an issuer the page is left, and `returned` goes on. */
export async function signIn() {
  try {
    const { signIn: settings } = await ask("console/config.json");
    return settings ? await leave(settings) : paste();
  } catch (error) {
    return paste(`The issuer does not answer (${error.message}).`);
  }
}

/** Forget the token. */
export function signOut() {
  token.set(null);
  say("Signed out");
}

/** Go on where the issuer sent the browser back, if it did; what went wrong, if something did. */
export async function returned() {
  const begun = JSON.parse(sessionStorage.getItem(BEGUN) ?? "null");
  if (!begun || !CODE.test(location.search)) return "";
  sessionStorage.removeItem(BEGUN);
  const answer = new URLSearchParams(location.search);
  history.replaceState(null, "", `${location.pathname}${begun.hash}`);
  if (answer.get("state") !== begun.state || !answer.get("code")) {
    return `Signing in did not work: ${answer.get("error_description") ?? answer.get("error") ?? "the answer is not to this request"}`;
  }
  try {
    token.set(await exchanged(begun, answer.get("code")));
    return "";
  } catch (error) {
    return `Signing in did not work: ${error.message}`;
  }
}

/** The token for a code: of those that come, the one that names our audience; the service checks. */
async function exchanged({ tokens, back, client, verifier, audience }, code) {
  const wish = { grant_type: "authorization_code", code, redirect_uri: back, client_id: client, code_verifier: verifier };
  const response = await fetch(tokens, { method: "POST", body: new URLSearchParams(wish) });
  const given = await response.json();
  if (!given.access_token) throw new Error(given.error_description ?? given.error ?? `the issuer answered ${response.status}`);
  return [given.access_token, given.id_token].find((one) => audiences(one).includes(audience)) ?? given.access_token;
}

async function leave({ issuer, clientId, audience }) {
  const found = await fetch(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  const { authorization_endpoint: page, token_endpoint: tokens } = await found.json();
  const [verifier, state] = [secret(), secret()];
  const back = `${location.origin}${location.pathname}`;
  sessionStorage.setItem(BEGUN, JSON.stringify({ verifier, state, tokens, back, client: clientId, audience, hash: location.hash }));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const wish = new URLSearchParams({
    response_type: "code",
    client_id: clientId,
    redirect_uri: back,
    scope: "openid",
    audience,
    state,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
  });
  location.assign(`${page}${page.includes("?") ? "&" : "?"}${wish}`);
  return false;
}

/** Whom a token is for, as it says itself; some issuers name the audience in the id token only. */
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

function paste(why) {
  return new Promise((resolve) => {
    const field = h("input", { id: "token", type: "password", autocomplete: "off", required: true, spellcheck: "false" });
    const dialog = h(
      "dialog",
      {
        "aria-labelledby": "sign-title",
        onclose: () => {
          const given = dialog.returnValue === "in" ? field.value.trim().replace(/^Bearer\s+/i, "") : "";
          if (given) token.set(given);
          dialog.remove();
          resolve(Boolean(given));
        },
      },
      h("h2", { id: "sign-title" }, "Sign in"),
      why && h("p", { class: "notice" }, why),
      h(
        "form",
        { method: "dialog" },
        h("label", { for: "token" }, "A bearer token of your issuer. It is kept in this tab only."),
        field,
        h("p", { class: "row" }, h("button", { value: "in", class: "main" }, "Sign in"), h("button", { value: "", formnovalidate: true }, "Cancel")),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}
