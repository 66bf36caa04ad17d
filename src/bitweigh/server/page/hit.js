// @ts-check
// One item on the page: its rank, title, id, distance and payload, and where to go from it.
import { html } from "./vendor/standalone.module.js";
import { distance } from "./format.js";
import { Payload, Summary, titleField, titleOf } from "./payload.js";

/**
 * An item's title with its id beside it, unless the id is all there is to call it by.
 * @param {{item: Shown, clipped?: boolean}} props
 */
export function Name({ item, clipped }) {
  const id = `#${item.id}`;
  const title = titleOf(item);
  return html`<strong class=${`title ${clipped ? "clipped" : ""} ${title === id ? "id" : ""}`} dir="auto">${title}</strong>
    ${title !== id && html`<span class="id">${id}</span>`}`;
}

/**
 * Children stand below the payload; `brief` is one line of it.
 * @param {HitProps} props
 */
export function Hit({ item, rank, mark, more, choose, brief, children }) {
  const field = titleField(item.payload);
  return html`<li class="card hit">
    <div class="hit-head">
      ${rank !== undefined && html`<span class="rank">${rank}</span>`}
      <${Name} item=${item} clipped=${brief} />
      ${item.key !== undefined && field !== null && html`<span class="quiet" dir="auto">${item.key}</span>`}
      ${mark}
      <span class="end">${more && html`<button type="button" class="small"
        onClick=${() => more(item.id)}><span class="on-wide">More like this</span><span class="on-narrow">Similar</span><span class="said"> #${item.id}</span></button>`}
      ${item.distance !== undefined && html`<span class="distance"><span class="said">distance </span>
        ${distance(item.distance)}</span>`}</span>
    </div>
    ${brief ? html`<${Summary} item=${item} />` : html`<${Payload} payload=${item.payload} without=${field} choose=${choose} />`}
    ${children}</li>`;
}
