// @ts-check
// Where to begin while nothing is asked: items to start from, or how to get some.
import { html } from "./vendor/standalone.module.js";
import { addressOf } from "./address.js";
import { Problem, useAnswer } from "./answer.js";
import { ofCollection } from "./api.js";
import { titleOf } from "./payload.js";

const OFFERED = 6;

/** @param {{place: Place}} props */
export const NoItems = ({ place }) =>
  html`<p class="empty" role="status">This collection has no items yet.
    ${" "}<a href=${addressOf({ ...place, view: "import" })}>Import a parquet file</a>.</p>`;

/** @param {ViewProps & {embedder: boolean, intro: string}} props */
export function Begin({ place, listed, again, more, embedder, intro }) {
  const path = `${ofCollection(listed.name)}/items?limit=${OFFERED}`;
  const { answer, error } = useAnswer(listed.cluster ? null : { method: "GET", path }, again);
  const items = /** @type {Item[]} */ (answer?.items ?? []);
  if (!answer && !listed.cluster) return html`<${Problem} error=${error} />`;
  if (!listed.cluster && !items.length) return html`<${NoItems} place=${place} />`;
  return html`<div class="empty"><p>${intro}</p><p>${embedder ? "Type what to look for, in words" : "Type the id of an item, as in #17, or paste a vector"}${items.length
      ? ", or start from an item:" : "."}</p>
    <p class="row">${items.map(
      (item) => html`<button type="button" class="chip" key=${item.id} onClick=${() => more(item.id)}
        aria-label=${`More like ${titleOf(item)}`}>
        <bdi class="clipped">${titleOf(item)}</bdi></button>`,
    )}</p></div>`;
}
