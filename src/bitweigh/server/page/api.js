// @ts-check
// Requests to the server: the key, ids as strings, problems as errors, and who is told when the
// server does not answer.

const KEY = "bitweigh-key";

/** What the server refused, or that it did not answer (status 0). */
export class Refused extends Error {
  /** @param {number} status @param {string} detail */
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/**
 * Called with each Refused that concerns the whole page: no key, no server.
 * @type {{refused: (error: Refused) => void}}
 */
export const listeners = { refused: () => {} };

/** The tab's storage; where that is blocked, this page remembers the key until it is loaded again. */
function storage() {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}
let remembered = "";

export const key = {
  get: () => storage()?.getItem(KEY) ?? remembered,
  /** @param {string} value */
  set: (value) => {
    remembered = value;
    storage()?.setItem(KEY, value);
  },
  forget: () => {
    remembered = "";
    storage()?.removeItem(KEY);
  },
};

/** @param {string} name */
export const ofCollection = (name) => `/v1/collections/${encodeURIComponent(name)}`;

/** @param {string} path */
const withStringIds = (path) => `${path}${path.includes("?") ? "&" : "?"}ids=string`;

/** @returns {Record<string, string>} */
function headers() {
  return key.get() ? { authorization: `Bearer ${key.get()}` } : {};
}

/** @param {number} status @param {string} text */
function refusal(status, text) {
  let detail;
  try {
    ({ detail } = JSON.parse(text));
  } catch {
    // A proxy in between may answer something other than JSON.
  }
  const error = new Refused(status, detail ?? `The server answered with status ${status}.`);
  if (status === 401) listeners.refused(error);
  return error;
}

function unreachable() {
  const error = new Refused(0, "The server is not responding.");
  listeners.refused(error);
  return error;
}

/**
 * The text of an answer; raises Refused.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 */
async function text(method, path, body) {
  let response;
  let content;
  try {
    response = await fetch(path, {
      method,
      headers: body === undefined ? headers() : { ...headers(), "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "omit",
    });
    content = await response.text();
  } catch {
    throw unreachable();
  }
  // A proxy answers 502 if it cannot reach the server.
  if (response.status === 502) throw unreachable();
  if (!response.ok) throw refusal(response.status, content);
  return content;
}

/**
 * The JSON of an answer, with ids as strings.
 * @param {Asked} request
 */
export async function ask({ method, path, body }) {
  return JSON.parse(await text(method, withStringIds(path), body), exactly);
}

/**
 * Integers beyond 2^53 as BigInt, in browsers that say how a number was written.
 * @param {string} _
 * @param {unknown} value
 * @param {{source?: string}} [context]
 */
const exactly = (_, value, context) =>
  Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
    ? BigInt(/** @type {string} */ (context?.source))
    : value;

/** The metrics, as text. */
export const metrics = () => text("GET", "/metrics");

/** Whether the server answers at all. */
export async function answers() {
  try {
    return (await fetch("/livez")).ok;
  } catch {
    return false;
  }
}

/**
 * Send a file; `progress` is called with the part that is sent, from 0 to 1.
 * @param {string} path
 * @param {File} file
 * @param {(part: number) => void} progress
 */
export function upload(path, file, progress) {
  // fetch does not say how much it has sent.
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.setRequestHeader("content-type", "application/vnd.apache.parquet");
    request.upload.onprogress = (event) => progress(event.loaded / Math.max(1, event.total));
    // The server closed the connection while the file was being sent. Sent again without the file,
    // the request is refused for the same reason, which then arrives; 415 means only that the file
    // is missing.
    const cut = new Refused(413, "The server did not take the whole file: it may be too large, or have changed.");
    request.onerror = () =>
      text("POST", path).then(() => reject(cut), (refused) => reject(refused.status === 415 ? cut : refused));
    request.onload = () =>
      request.status < 300
        ? resolve(JSON.parse(request.responseText))
        : reject(refusal(request.status, request.responseText));
    request.send(file);
  });
}
