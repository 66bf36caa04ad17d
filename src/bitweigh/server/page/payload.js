// @ts-check
// Payloads as text, pictures and links. Nothing of a payload becomes markup, and nothing that it
// names is loaded: that would tell a stranger who looks at what.
import { html, useState } from "./vendor/standalone.module.js";

const DATA_URL = /^data:image\/(png|jpeg|webp);base64,[A-Za-z0-9+/]+={0,2}$/;
// How files of each kind begin, in base64; SVG is never drawn.
const BEGINNINGS = [
  { type: "png", begins: /^iVBORw0KGgo/ },
  { type: "jpeg", begins: /^\/9j\// },
  { type: "webp", begins: /^UklGR[A-Za-z0-9+/]{7}RUJQ/ },
];
const BASE64 = /^[A-Za-z0-9+/]{24,}={0,2}$/;
const LINK = /^https?:\/\/[^\s]+$/i;
const TITLES = ["title", "name", "label", "heading", "headline", "subject"];
const LONG = 400;
const SHORT = 40;
const GROUPS = ["and", "or", "not"];
const LONGEST_FILTER = 200;

/**
 * The address of a picture that a value holds, "" if it holds none.
 * @param {unknown} value
 */
export function pictureOf(value) {
  if (typeof value !== "string") return "";
  if (DATA_URL.test(value)) return value;
  const found = BEGINNINGS.find(({ begins }) => begins.test(value));
  return found && value.length % 4 === 0 && BASE64.test(value)
    ? `data:image/${found.type};base64,${value}`
    : "";
}

/**
 * The names of fields that are text to read, the title first.
 * @param {Fields | undefined} payload
 */
function textsOf(payload) {
  const fields = Object.keys(payload ?? {}).filter((name) => {
    const value = payload?.[name];
    return typeof value === "string" && value.trim() !== "" && value.length <= LONG &&
      !LINK.test(value) && !pictureOf(value) && !value.startsWith("data:");
  });
  const title = TITLES.map((wanted) => fields.find((name) => name.toLowerCase() === wanted)).find(Boolean);
  return title ? [title, ...fields.filter((name) => name !== title)] : fields;
}

/**
 * The field that names an item, null if none does.
 * @param {Fields | undefined} payload
 */
export const titleField = (payload) => textsOf(payload)[0] ?? null;

/**
 * What an item says besides its title, in one line.
 * @param {{item: Item}} props
 */
export function Summary({ item: { payload } }) {
  const text = payload?.[textsOf(payload)[1]];
  return text === undefined ? null : html`<span class="summary clipped" dir="auto">${text}</span>`;
}

/**
 * What an item is called: its title, its key, or its id.
 * @param {Item} item
 */
export function titleOf({ id, key, payload }) {
  const field = titleField(payload);
  return field === null ? key || `#${id}` : String(payload?.[field]);
}

/**
 * A value as JSON. Large integers are BigInt in browsers that have `rawJSON`.
 * @param {unknown} value
 */
const written = (value) =>
  JSON.stringify(value, (_, one) => (typeof one === "bigint" ? /** @type {any} */ (JSON).rawJSON(one) : one));

/**
 * Whether the server can filter by a value: names with dots are paths there.
 * @param {string} name
 * @param {unknown} value
 * @returns {value is Plain}
 */
const canFilter = (name, value) =>
  (value === null || ["number", "boolean", "string"].includes(typeof value)) &&
  (!Number.isInteger(value) || Number.isSafeInteger(value)) &&
  String(value).length <= LONGEST_FILTER &&
  name !== "" &&
  name.length <= LONGEST_FILTER &&
  !GROUPS.includes(name) &&
  !/[".]/.test(name);

/** @param {{source: string, name: string}} props */
function Picture({ source, name }) {
  const [broken, setBroken] = useState(false);
  return broken
    ? html`<span class="quiet">a picture that cannot be shown</span>`
    : html`<img class="thumb" src=${source} alt=${`picture in ${name}`} onError=${() => setBroken(true)} />`;
}

/** @param {{text: string}} props */
function Text({ text }) {
  const [open, setOpen] = useState(false);
  if (text.length <= LONG) return html`<span dir="auto">${text}</span>`;
  return html`<span dir="auto">${open ? text : `${text.slice(0, LONG)}…`}</span>${" "}
    <button type="button" class="link" aria-expanded=${open} onClick=${() => setOpen(!open)}>
      ${open ? "less" : "more"}</button>`;
}

/** @param {{name: string, value: unknown, choose?: Choose}} props */
function Value({ name, value, choose }) {
  const picture = pictureOf(value);
  if (picture) return html`<${Picture} key=${picture} source=${picture} name=${name} />`;
  if (typeof value === "string" && LINK.test(value))
    return html`<a href=${value} target="_blank" rel="noopener noreferrer nofollow" dir="auto">${value}</a>`;
  const text = typeof value === "string" ? value : written(value);
  if (choose && canFilter(name, value))
    return html`<button class="value" type="button" dir="auto" title=${value === null ? `Only items without ${name}` : `Only items whose ${name} is this`}
      onClick=${() => choose(name, value)}>${text === "" ? "(empty)" : text}</button>`;
  return html`<${Text} text=${text} />`;
}

/**
 * The fields of a payload. The one shown above as the title is left out, unless it is short and not
 * in TITLES: then it may be a value to filter by.
 * @param {{payload?: Fields, without: string | null, choose?: Choose}} props
 */
export function Payload({ payload, without, choose }) {
  const fields = Object.entries(payload ?? {}).filter(
    ([name, value]) =>
      name !== without || !(TITLES.includes(name.toLowerCase()) || String(value).length > SHORT),
  );
  if (!fields.length) return null;
  return html`<dl class="payload">${fields.map(
    ([name, value]) => html`<div key=${name}><dt dir="auto">${name}</dt>
      <dd><${Value} name=${name} value=${/** @type {any} */ (value)} choose=${choose} /></dd></div>`,
  )}</dl>`;
}

/**
 * The filter that is in force, each part with a way to remove it.
 * @param {{filter: Filter, change: (filter: Filter) => void}} props
 */
export function Chips({ filter, change }) {
  const parts = Object.entries(filter);
  if (!parts.length) return null;
  return html`<p class="row chips"><span class="quiet">Only</span> ${parts.map(
    ([name, value]) => html`<button type="button" class="chip" key=${name}
      aria-label=${`Remove the filter ${name} is ${JSON.stringify(value)}`}
      onClick=${() => change(Object.fromEntries(parts.filter(([one]) => one !== name)))}>
      <span><bdi>${name}</bdi>:</span> <bdi class="clipped">${typeof value === "string" ? value : JSON.stringify(value)}</bdi>
      ${" "}<span aria-hidden="true">×</span></button>`,
  )}</p>`;
}
