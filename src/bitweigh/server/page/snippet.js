// @ts-check
// The requests of a view as people would send them themselves: by curl, and in Python.
import { html, useState } from "./vendor/standalone.module.js";
import { key } from "./api.js";

const MAX_ARGUMENT = 30_000;
const JOIN = " \\\n  ";
const PARQUET = "application/vnd.apache.parquet";

/**
 * A value in Python's notation.
 * @param {any} value
 * @returns {string}
 */
function python(value) {
  if (value === null) return "None";
  if (typeof value === "bigint") return String(value);
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value).map(([name, one]) => `${python(name)}: ${python(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}

/**
 * Arguments by name, without those that are undefined.
 * @param {Record<string, any>} given
 */
const named = (given) =>
  Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${python(value)}`]));

/**
 * The client's method that sends a search, and its arguments.
 * @param {Record<string, any>} body
 */
function searchOf({ text, id, key, costs, vector, ...options }) {
  const given = named(options);
  if (text !== undefined) return ["search_text", python(text), ...given];
  if (id !== undefined) return ["search_by_id", id, ...given];
  if (key !== undefined) return ["search_by_id", ...named({ keys: key }), ...given];
  if (costs !== undefined) return ["search_costs", python(costs), ...given];
  return ["search", python(vector), ...given];
}

/** @param {Record<string, any>} body */
const explainOf = ({ id, ids, ...given }) => [
  "explain",
  ...named({ id: id && BigInt(id), ids: ids?.map(BigInt), ...given }),
];

/** @param {URLSearchParams} query @param {string} file */
function importOf(query, file) {
  const { payload = "", ...names } = Object.fromEntries(query);
  return ["import_parquet", python(file), ...named({ ...names, payload: payload.split(",").filter(Boolean) })];
}

/**
 * A call with one argument to a line, unless it is short.
 * @param {string} before
 * @param {string[]} call the method and its arguments
 */
function called(before, [method, ...given]) {
  const short = `${before}.${method}(${given.join(", ")})`;
  return short.length <= 76 ? short : `${before}.${method}(\n${given.map((one) => `    ${one},\n`).join("")})`;
}

/**
 * The lines that send a request by the client, and those of imports before them.
 * @param {Asked} request
 */
function callOf({ method, path, body, file }) {
  const [route, rest] = path.split("?", 2);
  const query = new URLSearchParams(rest ?? "");
  const [, , what, name, action] = route.split("/");
  // The client has no call for these.
  if (what !== "collections" || name === undefined || query.has("after")) {
    if (path === "/v1") return { lines: ["print(client.info())"] };
    const headers = key.get() ? `, headers={"authorization": "Bearer " + os.environ["BITWEIGH_KEY"]}` : "";
    return { imports: ["import httpx"], lines: [`print(httpx.get(${python(location.origin + path)}${headers}).text)`] };
  }
  const of = `collection = client[${python(decodeURIComponent(name))}]`;
  const given = /** @type {Record<string, any>} */ (body ?? {});
  if (method === "PUT") {
    return { lines: [called("client", ["create", python(decodeURIComponent(name)), ...named(given)])] };
  }
  if (action === "search") {
    const show = ["for id_, distance in zip(found.ids, found.distances):", "    if id_ >= 0:", "        print(id_, distance)"];
    return { lines: [of, `found = ${called("collection", searchOf(given))}`, ...show] };
  }
  if (action === "explain")
    return { lines: [of, `found = ${called("collection", explainOf(given))}`, `print(found["plan"])`] };
  if (action === "import")
    return { lines: [of, `print(${called("collection", importOf(query, file ?? ""))})`] };
  if (action === "items") {
    const filter = query.get("filter");
    const options = named({ filter: filter === null ? undefined : JSON.parse(filter) });
    return {
      imports: ["from itertools import islice"],
      lines: [of, `for item in islice(${called("collection", ["iterate", ...options])}, ${query.get("limit")}):`, "    print(item)"],
    };
  }
  return { lines: [of, "print(collection.info())"] };
}

/** @param {Asked[]} requests */
export function pythonOf(requests) {
  const calls = requests.map(callOf);
  const imports = new Set(calls.flatMap(({ imports = [] }) => imports));
  if (key.get()) imports.add("import os");
  const lines = new Set(calls.flatMap((call) => call.lines.join("\n")));
  const given = [python(location.origin), ...(key.get() ? [`key=os.environ["BITWEIGH_KEY"]`] : [])];
  const body = [...lines].join("\n").split("\n").map((line) => `    ${line}`);
  /** @param {string[]} lines */
  const those = (...lines) => lines.filter((line) => imports.has(line));
  const standard = those("import os", "from itertools import islice");
  return [...standard, ...(standard.length ? [""] : []), ...those("import httpx"), "from bitweigh.client import Client", "",
    `with Client(${given.join(", ")}) as client:`, ...body].join("\n");
}

/** @param {string} text for a POSIX shell */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * The key stays out of what people copy.
 * @param {Asked} request
 */
function curlOf({ method, path, body, file }) {
  const parts = ["curl", method === "GET" || method === "POST" ? "" : `-X ${method}`, quoted(location.origin + path)];
  if (key.get()) parts.push(`-H "authorization: Bearer $BITWEIGH_KEY"`);
  if (body !== undefined) {
    const text = JSON.stringify(body);
    parts.push("-H 'content-type: application/json'");
    // Linux takes at most 128 KiB for an argument.
    if (text.length > MAX_ARGUMENT) return `${[...parts, "--data-binary @-"].filter(Boolean).join(JOIN)} <<'END'\n${text}\nEND`;
    parts.push(`-d ${quoted(text)}`);
  }
  if (file !== undefined) parts.push(`-H 'content-type: ${PARQUET}'`, `--data-binary ${quoted(`@${file}`)}`);
  return parts.filter(Boolean).join(JOIN);
}

/** @param {{name: string, text: string}} props */
function Code({ name, text }) {
  const [copied, setCopied] = useState("");
  return html`<div class="code"><p>${name}</p>
    ${navigator.clipboard && html`<button type="button" class="small" aria-live="polite" onClick=${() =>
      navigator.clipboard.writeText(text).then(() => setCopied(text), () => setCopied(""))}>
      ${copied === text ? "Copied" : `Copy ${name}`}</button>`}
    <pre tabindex="0" role="region" aria-label=${`this request in ${name}`}>${text}</pre></div>`;
}

/**
 * The requests of a view outside the page.
 * @param {{requests: (Asked | null)[]}} props
 */
export function Snippet({ requests }) {
  const sent = /** @type {Asked[]} */ (requests.filter((one) => one !== null));
  const [open, setOpen] = useState(false);
  if (!sent.length) return null;
  return html`<details class="snippet" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${sent.length > 1 ? "These requests" : "This request"} as curl and Python</summary>
    ${open && html`<${Code} name="curl" text=${sent.map(curlOf).join("\n")} />
      <${Code} name="Python" text=${pythonOf(sent)} />`}</details>`;
}
