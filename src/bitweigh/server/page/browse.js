// @ts-check
// The browse view: items in ascending id, filtered by clicking values.
import { html, useEffect, useState } from "./vendor/standalone.module.js";
import { ask, ofCollection } from "./api.js";
import { Payload, Problem, Snippet } from "./parts.js";

/** @typedef {import("./search.js").ViewProps} ViewProps */

const PAGE = 20;

/** @param {string} collection @param {Record<string, unknown>} filter @param {string | null} after */
function pageOf(collection, filter, after) {
  const query = new URLSearchParams({ limit: String(PAGE) });
  if (Object.keys(filter).length) query.set("filter", JSON.stringify(filter));
  if (after !== null) query.set("after", after);
  return { method: "GET", path: `${ofCollection(collection)}/items?${query}` };
}

/** @param {ViewProps} props */
export function Browse({ collection, again, more }) {
  const [filter, setFilter] = useState(/** @type {Record<string, unknown>} */ ({}));
  const [after, setAfter] = useState(/** @type {string | null} */ (null));
  const [shown, setShown] = useState({ items: /** @type {any[]} */ ([]), next: /** @type {string | null} */ (null) });
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(true);
  const request = pageOf(collection, filter, after);
  useEffect(() => {
    const stop = new AbortController();
    setBusy(true);
    ask(request, stop.signal).then(
      (answer) => {
        setShown((old) => ({
          items: after === null ? answer.items : [...old.items, ...answer.items],
          next: answer.next,
        }));
        setError("");
        setBusy(false);
      },
      (refused) => {
        if (stop.signal.aborted) return;
        setError(refused.message);
        setBusy(false);
      },
    );
    return () => stop.abort();
  }, [request.path, again]);
  /** @param {Record<string, unknown>} next */
  const choose = (next) => {
    setAfter(null);
    setFilter(next);
  };
  const chips = Object.entries(filter);
  return html`<div aria-busy=${busy}><h2>Items</h2>
    <p class="row">${chips.length
      ? chips.map(([name, value]) => html`<button type="button" class="chip" key=${name}
          aria-label=${`Remove the filter ${name} is ${JSON.stringify(value)}`}
          onClick=${() => choose(Object.fromEntries(chips.filter(([one]) => one !== name)))}>
          <bdi>${name}</bdi> is <bdi>${JSON.stringify(value)}</bdi> <span aria-hidden="true">×</span></button>`)
      : html`<span class="quiet">Click a value to see only items that have it.</span>`}</p>
    <${Problem} error=${error} />
    ${!busy && !error && !shown.items.length && html`<p>There are no items${chips.length ? " with these values" : " yet"}.</p>`}
    <ul class="hits">${shown.items.map(
      (item) => html`<li class="hit" key=${item.id}><div class="hit-head"><strong class="id">#${item.id}</strong>
        ${item.key && html`<span dir="auto">${item.key}</span>`}
        <button type="button" class="small" aria-label=${`More like #${item.id}`}
          onClick=${() => more(item.id)}>More like this</button></div>
        <${Payload} payload=${item.payload}
          choose=${(/** @type {string} */ name, /** @type {unknown} */ value) => choose({ ...filter, [name]: value })} /></li>`,
    )}</ul>
    ${shown.next !== null && html`<button type="button" disabled=${busy} onClick=${() => setAfter(shown.next)}>More items</button>`}
    <${Snippet} request=${request} /></div>`;
}
