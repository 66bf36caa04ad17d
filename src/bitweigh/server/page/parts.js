// @ts-check
// Small parts that several views share: payloads, the request as curl and Python, states of loading.
import { html, useEffect, useState } from "./vendor/standalone.module.js";
import { ask, key } from "./api.js";

/** @typedef {import("./api.js").Request} Request */

const PICTURE = /^data:image\/(png|jpeg|webp);base64,[A-Za-z0-9+/]+={0,2}$/;
const LINK = /^https?:\/\/[^\s]+$/i;
const LONG = 600;

/** @param {number} us */
export const microseconds = (us) =>
  us < 1000 ? `${Math.round(us)} µs` : us < 1e6 ? `${(us / 1000).toPrecision(3)} ms` : `${(us / 1e6).toPrecision(3)} s`;

/** @param {number} value */
export const number = (value) =>
  Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(5)));

/** @param {number} bytes */
export function size(bytes) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) [bytes, unit] = [bytes / 1000, unit + 1];
  return `${unit ? bytes.toPrecision(3) : bytes} ${units[unit]}`;
}

/** @param {unknown} value */
const isPlain = (value) => value === null || ["string", "number", "boolean"].includes(typeof value);

/**
 * One value of a payload. Only pictures inside the payload are drawn: loading an address would
 * tell a stranger who looks at what.
 * @param {{name: string, value: any, choose?: (name: string, value: any) => void}} props
 */
function Value({ name, value, choose }) {
  if (typeof value === "string" && PICTURE.test(value))
    return html`<img class="thumb" src=${value} alt=${`picture in ${name}`} />`;
  if (typeof value === "string" && LINK.test(value))
    return html`<a href=${value} target="_blank" rel="noopener noreferrer nofollow" dir="auto">${value}</a>`;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const shown = text.length > LONG ? `${text.slice(0, LONG)}…` : text;
  // A filter takes names without quotes, and short values.
  if (choose && isPlain(value) && text.length <= 200 && !/["]|^\.|\.$|\.\./.test(name))
    return html`<button class="value" type="button" dir="auto" title=${`Only items whose ${name} is this`}
      onClick=${() => choose(name, value)}>${shown}</button>`;
  return html`<span dir="auto">${shown}</span>`;
}

/** @param {{payload?: Record<string, unknown>, choose?: (name: string, value: any) => void}} props */
export function Payload({ payload, choose }) {
  if (!payload || !Object.keys(payload).length) return html`<p class="quiet">no payload</p>`;
  return html`<dl class="payload">${Object.entries(payload).map(
    ([name, value]) => html`<div><dt dir="auto">${name}</dt>
      <dd><${Value} name=${name} value=${value} choose=${choose} /></dd></div>`,
  )}</dl>`;
}

/** A few words for an item where there is no room for its payload. @param {any} item */
export function label(item) {
  const texts = Object.values(item.payload ?? {}).filter(
    (value) => typeof value === "string" && !PICTURE.test(value),
  );
  return String(texts[0] ?? item.key ?? "").slice(0, 60);
}

/** @param {any} value @returns {string} */
function python(value) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${python(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}

/** @param {string} text for a POSIX shell */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** The request as commands; the key stays out of what people copy. @param {Request} request */
export function commands({ method, path, body, file }) {
  const url = location.origin + path;
  const curl = ["curl", method === "GET" ? "" : `-X ${method}`, quoted(url)];
  const call = [JSON.stringify(url)];
  if (key.get()) {
    curl.push(`-H "authorization: Bearer $BITWEIGH_KEY"`);
    call.push(`headers={"authorization": "Bearer " + os.environ["BITWEIGH_KEY"]}`);
  }
  if (body !== undefined) {
    curl.push("-H 'content-type: application/json'", `-d ${quoted(JSON.stringify(body))}`);
    call.push(`json=${python(body)}`);
  }
  if (file) {
    curl.push("-H 'content-type: application/vnd.apache.parquet'", `--data-binary @${quoted(file)}`);
    call.push(`content=open(${JSON.stringify(file)}, "rb")`);
    if (!key.get()) call.push(`headers={"content-type": "application/vnd.apache.parquet"}`);
    else call[1] = call[1].replace("={", `={"content-type": "application/vnd.apache.parquet", `);
  }
  const imports = key.get() ? "import os\n\nimport httpx\n\n" : "import httpx\n\n";
  const answer = path === "/metrics" ? "text" : "json()";
  return {
    curl: curl.filter(Boolean).join(" \\\n  "),
    python: `${imports}answer = httpx.${method.toLowerCase()}(\n    ${call.join(",\n    ")},\n)\nprint(answer.${answer})`,
  };
}

/** The same request outside the page. @param {{request: Request | null}} props */
export function Snippet({ request }) {
  const [copied, setCopied] = useState("");
  if (!request) return null;
  const found = commands(request);
  /** @param {string} name @param {string} text */
  const block = (name, text) => html`<div class="code"><h3>${name}</h3>
    <pre tabindex="0" aria-label=${`this request in ${name}`}>${text}</pre>
    <button type="button" onClick=${async () => {
      await navigator.clipboard?.writeText(text);
      setCopied(name);
    }}>${copied === name ? "Copied" : `Copy ${name}`}</button></div>`;
  return html`<details class="snippet"><summary>This request as curl and Python</summary>
    ${block("curl", found.curl)}${block("Python", found.python)}</details>`;
}

/**
 * The answer to a request, asked again when it or `again` changes; an older answer stays until the
 * new one is there.
 * @param {Request | null} request @param {unknown} [again]
 * @returns {{answer: any, error: string, busy: boolean}}
 */
export function useAnswer(request, again) {
  const [state, setState] = useState({ answer: /** @type {any} */ (null), error: "", busy: false });
  const asked = request && JSON.stringify(request);
  useEffect(() => {
    if (!request) {
      setState({ answer: null, error: "", busy: false });
      return undefined;
    }
    const stop = new AbortController();
    setState((old) => ({ ...old, busy: true }));
    ask(request, stop.signal).then(
      (answer) => {
        setState({ answer, error: "", busy: false });
      },
      (error) => {
        if (!stop.signal.aborted) setState({ answer: null, error: error.message, busy: false });
      },
    );
    return () => stop.abort();
  }, [asked, again]);
  return state;
}

/** @param {{error: string}} props */
export const Problem = ({ error }) => (error ? html`<p class="problem" role="alert" dir="auto">${error}</p>` : null);
