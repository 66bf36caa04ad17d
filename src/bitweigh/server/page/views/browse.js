// @ts-check
// The browse view: items in ascending id, filtered by clicking values.
import { html, useEffect, useRef, useState } from "../vendor/standalone.module.js";
import { Problem, Waiting } from "../answer.js";
import { isEmpty } from "../address.js";
import { ask, ofCollection } from "../api.js";
import { NoItems } from "../begin.js";
import { counted } from "../format.js";
import { Hit } from "../hit.js";
import { Snippet } from "../snippet.js";

const PAGE = 20;

/** @param {string} name @param {Filter} filter @param {string | null} after */
function pageOf(name, filter, after) {
  const query = new URLSearchParams({ limit: String(PAGE) });
  if (!isEmpty(filter)) query.set("filter", JSON.stringify(filter));
  if (after !== null) query.set("after", after);
  return { method: "GET", path: `${ofCollection(name)}/items?${query}` };
}

/**
 * The id before the one that was typed, since a page begins after an id; null if there is none.
 * @param {string} typed
 */
const before = (typed) => {
  const id = BigInt(typed.trim().replace(/^#/, "") || 0);
  return id > 0n ? String(id - 1n) : null;
};

/** @param {ViewProps} props */
export const Browse = (props) =>
  props.listed.cluster
    ? html`<p class="empty">The items of a cluster cannot be listed here, only searched.</p>`
    : html`<${Items} ...${props} />`;

/** @param {ViewProps} props */
function Items({ listed, place, again, more, choose }) {
  const [from, setFrom] = useState("");
  const [start, setStart] = useState(/** @type {string | null} */ (null));
  const [state, setState] = useState(/** @type {Listing} */ ({ items: null, next: null, error: "" }));
  const [busy, setBusy] = useState(true);
  const newest = useRef(0);
  const first = pageOf(listed.name, place.filter, start);
  /** @param {string | null} after @param {Item[]} shown before */
  const load = async (after, shown) => {
    const turn = ++newest.current;
    setBusy(true);
    try {
      const answer = await ask(pageOf(listed.name, place.filter, after));
      if (turn === newest.current) setState({ items: [...shown, ...answer.items], next: answer.next, error: "" });
    } catch (refused) {
      if (turn === newest.current) setState((old) => (refused.status === 0 ? old : { ...old, items: shown.length ? shown : null, error: refused.message }));
    }
    if (turn === newest.current) setBusy(false);
  };
  useEffect(() => {
    load(start, []);
    return () => {
      newest.current += 1;
    };
  }, [first.path, again]);
  const { items, next, error } = state;
  const filtered = !isEmpty(place.filter);
  return html`<div aria-busy=${busy}>${listed.items > 0 && html`<div class="toolbar">
      <p class="line">${counted(listed.items, "item")} by id. Click a value to see only items that have it.</p>
      <form class="row" onSubmit=${(event) => {
        event.preventDefault();
        setStart(before(from));
      }}><label>From <input inputmode="numeric" size="10" placeholder="#id" pattern=" *#?[0-9]* *" title="an id, as in #17" value=${from}
          onInput=${(event) => setFrom(event.target.value)} /></label>
        <button type="submit">Go</button></form></div>`}
    <${Problem} error=${error} />
    ${!items && !error && html`<${Waiting} busy=${busy} />`}
    ${items && !error && !items.length && (filtered || start !== null
      ? html`<p class="empty" role="status">${filtered
          ? `No item${start !== null ? " from this id on" : ""} has these values.` : "There are no items from this id on."}</p>`
      : html`<${NoItems} place=${place} />`)}
    ${items && html`<ul class="hits">${items.map(
      (item) => html`<${Hit} key=${item.id} item=${item} more=${more} choose=${choose} />`,
    )}</ul>`}
    ${items && next !== null && html`<p class="after"><button type="button"
      onClick=${() => busy || load(next, items)}>More items</button></p>`}
    <${Snippet} requests=${[first]} /></div>`;
}
