// @ts-check
// The search view: hits with their payloads and bits, and the same query under plain Hamming beside.
import { html, useMemo, useState } from "../vendor/standalone.module.js";
import { isEmpty } from "../address.js";
import { Problem, useAnswer, Waiting } from "../answer.js";
import { byWeight, hamming } from "../costs.js";
import { counted, microseconds } from "../format.js";
import { Hit } from "../hit.js";
import { asksItem, costsRequest, explainRequest, othersOf, searchRequest } from "../requests.js";
import { Snippet } from "../snippet.js";
import { Legend, Strip } from "../strip.js";

/** @param {Found} found */
function inOneLine({ hits, took_us, engine_us, plan, exact, complete }) {
  const parts = [
    `${counted(hits.length, "hit")} in ${microseconds(took_us)}, ${microseconds(engine_us)} of it in the index`,
    plan ? `plan: ${plan}` : "",
    exact ? "exact" : "ranked again by the vectors",
    complete ? "" : "shards are missing",
  ];
  return parts.filter(Boolean).join(" · ");
}

/**
 * The rank that each hit has in another list.
 * @param {Hit[]} hits
 */
const ranksOf = (hits) => new Map(hits.map((hit, place) => [hit.id, place + 1]));

/**
 * Where a hit stands in the other list.
 * @param {Map<string, number> | null} ranks
 * @param {string} id
 * @param {string} other
 */
function markOf(ranks, id, other) {
  if (!ranks) return null;
  const rank = ranks.get(id);
  return rank === undefined
    ? html`<span class="mark alone">only here</span>`
    : html`<span class="mark">${other} rank ${rank}</span>`;
}

/** @param {ViewProps} props */
const Nothing = ({ place, query }) =>
  html`<p class="empty">${!isEmpty(place.filter)
    ? `No ${asksItem(query) ? "other " : ""}item has these values. Remove part of the filter above.`
    : "There is nothing else to find: the collection has no other items."}</p>`;

/** @param {ViewProps} props */
export function Search(props) {
  const { query, again, more, choose } = props;
  const [beside, setBeside] = useState(false);
  const request = searchRequest(props);
  const found = useAnswer(request, again);
  const answer = /** @type {Found | null} */ (found.answer);
  const ids = found.fresh && answer ? answer.hits.map((hit) => hit.id) : [];
  const explained = useAnswer(ids.length ? explainRequest(props, { k: 1, ids }) : null, again);
  const why = /** @type {Explained | null} */ (explained.fresh ? explained.answer : null);
  const order = useMemo(() => byWeight(why?.costs ?? []), [why]);
  const plain = useAnswer(beside && why ? costsRequest(props, hamming(why.costs)) : null, again);
  const plainHits = plain.fresh && plain.answer ? othersOf(props, plain.answer.hits) : null;
  const only = plainHits?.map((hit) => hit.id).filter((id) => !ids.includes(id)) ?? [];
  const missed = useAnswer(only.length ? explainRequest(props, { k: 1, ids: only }) : null, again);
  if (!query) return null;
  const bits = { ...(missed.fresh && missed.answer?.bits), ...why?.bits };
  /** @param {Hit[]} hits @param {Map<string, number> | null} ranks @param {string} other */
  const list = (hits, ranks, other) => html`<ol class="hits">${hits.map(
    (hit, at) => html`<${Hit} key=${hit.id} item=${hit} rank=${at + 1} more=${more} choose=${choose}
      mark=${markOf(ranks, hit.id, other)}>
      ${why && bits[hit.id] && html`<${Strip} id=${hit.id} item=${bits[hit.id]} costs=${why.costs} order=${order} low />`}<//>`,
  )}</ol>`;
  const plainRanks = plainHits && ranksOf(plainHits);
  const shared = ids.filter((id) => plainRanks?.has(id)).length;
  // Where vectors rank again, the hits are not those by weighted bits.
  const kind = answer?.exact ? "weighted" : "vector";
  return html`<div aria-busy=${found.busy}><${Problem} error=${found.error || explained.error} />
    ${!answer && html`<${Waiting} busy=${found.busy} />`}
    ${answer && html`<div class="toolbar">
        <p class="line" role="status">${inOneLine(answer)}</p>
        <label><input type="checkbox" checked=${beside}
          onChange=${() => setBeside(!beside)} /> Compare with plain Hamming</label></div>
      ${why && answer.hits.length > 0 && html`<p class="line"><${Legend} costs=${why.costs} /></p>`}
      ${!answer.hits.length && html`<${Nothing} ...${props} />`}
      ${answer.hits.length > 0 && html`<div class=${`found ${beside ? "beside" : ""}`}>
        <section aria-label="Hits">${beside && html`<h2>${answer.exact ? "Weighted" : "By the vectors"}</h2>
            <p class="line">${answer.exact ? "Each bit pays its weight" : "The nearest by weighted bits, ranked again"}</p>`}
          ${list(answer.hits, plainRanks, "plain")}</section>
        ${beside && html`<section aria-labelledby="plain"><h2 id="plain">Plain Hamming</h2>
          <p class="line" role="status">${plainHits
            ? `Each bit pays 1 · ${shared} of ${plainHits.length} are ${kind} hits too`
            : "Each bit pays 1"}</p>
          <${Problem} error=${plain.error || missed.error} />
          ${plainHits && list(plainHits, ranksOf(answer.hits), kind)}</section>`}</div>`}`}
    <${Snippet} requests=${[request]} /></div>`;
}
