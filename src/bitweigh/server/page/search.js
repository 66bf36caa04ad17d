// @ts-check
// The search view: hits with their payloads, and the same query under plain Hamming beside them.
import { html, useEffect, useState } from "./vendor/standalone.module.js";
import { ask, ofCollection } from "./api.js";
import { hamming } from "./query.js";
import { microseconds, number, Payload, Problem, Snippet, useAnswer } from "./parts.js";

/**
 * @typedef {import("./query.js").Query} Query
 * @typedef {import("./api.js").Hit} Hit
 * @typedef {{collection: string, query: Query | null, k: number, again: number,
 *   more: (id: string) => void}} ViewProps
 */

/** @param {{hit: Hit, rank: number, more: (id: string) => void, mark?: string}} props */
export function HitCard({ hit, rank, more, mark }) {
  return html`<li class="hit">
    <div class="hit-head"><span class="rank">${rank}</span>
      <strong class="id">#${hit.id}</strong>${hit.key && html`<span dir="auto">${hit.key}</span>`}
      <span class="distance">distance ${number(hit.distance)}</span>
      ${mark && html`<span class="mark">${mark}</span>`}
      <button type="button" class="small" aria-label=${`More like #${hit.id}`}
        onClick=${() => more(hit.id)}>More like this</button></div>
    <${Payload} payload=${hit.payload} /></li>`;
}

/** Hits of the same query by plain Hamming distance. @param {ViewProps & {found: Hit[]}} props */
function Plain({ collection, query, k, again, more, found }) {
  const [state, setState] = useState({ hits: /** @type {Hit[] | null} */ (null), error: "" });
  useEffect(() => {
    const stop = new AbortController();
    const path = ofCollection(collection);
    (async () => {
      const explained = await ask(
        { method: "POST", path: `${path}/explain`, body: { ...query, k: 1, bins: 1 } },
        stop.signal,
      );
      // An item that is asked for by its id is no hit of its own, as in the search beside.
      const extra = query?.id === undefined ? 0 : 1;
      const body = { costs: hamming(explained.costs), k: k + extra, payload: true };
      const answer = await ask({ method: "POST", path: `${path}/search`, body }, stop.signal);
      const hits = answer.hits.filter((/** @type {Hit} */ hit) => hit.id !== query?.id);
      setState({ hits: hits.slice(0, k), error: "" });
    })().catch((error) => {
      if (!stop.signal.aborted) setState({ hits: null, error: error.message });
    });
    return () => stop.abort();
  }, [collection, JSON.stringify(query), k, again]);
  const weighted = new Set(found.map((hit) => hit.id));
  const both = state.hits?.filter((hit) => weighted.has(hit.id)).length ?? 0;
  return html`<section aria-labelledby="plain"><h2 id="plain">Plain Hamming</h2>
    <${Problem} error=${state.error} />
    ${state.hits && html`<p class="line">${both} of ${state.hits.length} are among the weighted hits</p>
      <ol class="hits">${state.hits.map(
        (hit, place) => html`<${HitCard} key=${hit.id} hit=${hit} rank=${place + 1} more=${more}
          mark=${weighted.has(hit.id) ? "" : "only here"} />`,
      )}</ol>`}</section>`;
}

/** @param {ViewProps} props */
export function Search(props) {
  const { collection, query, k, again, more } = props;
  const [beside, setBeside] = useState(false);
  const request = query && {
    method: "POST",
    path: `${ofCollection(collection)}/search`,
    body: { ...query, k, payload: true },
  };
  const { answer, error, busy } = useAnswer(request, again);
  if (!query) return null;
  return html`<div aria-busy=${busy}>
    <label class="check"><input type="checkbox" checked=${beside}
      onChange=${() => setBeside(!beside)} /> Plain Hamming beside it</label>
    <${Problem} error=${error} />
    ${answer && html`<div class=${beside ? "beside" : ""}>
      <section aria-labelledby="found"><h2 id="found">${beside ? "Weighted" : "Hits"}</h2>
        <p class="line" role="status">${answer.hits.length} hits in ${microseconds(answer.took_us)},
          ${" "}${microseconds(answer.engine_us)} of it in the engine${answer.plan ? `, plan ${answer.plan}` : ""},
          ${" "}${answer.exact ? "exact" : "ranked again by vectors"}</p>
        ${!answer.hits.length && html`<p>Nothing was found: the collection has no items.</p>`}
        <ol class="hits">${answer.hits.map(
          (/** @type {Hit} */ hit, /** @type {number} */ place) =>
            html`<${HitCard} key=${hit.id} hit=${hit} rank=${place + 1} more=${more} />`,
        )}</ol></section>
      ${beside && html`<${Plain} ...${props} found=${answer.hits} />`}</div>`}
    <${Snippet} request=${request} /></div>`;
}
