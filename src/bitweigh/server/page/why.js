// @ts-check
// The why view: each hit as a strip of bits in descending weight, and what each bit pays.
import { html, useMemo, useState } from "./vendor/standalone.module.js";
import { ofCollection } from "./api.js";
import { byWeight, least, weightOf } from "./query.js";
import { label, number, Problem, Snippet, useAnswer } from "./parts.js";

/**
 * @typedef {import("./api.js").Explained} Explained
 * @typedef {import("./api.js").Bits} Bits
 * @typedef {import("./search.js").ViewProps} ViewProps
 */

const MOST_EXPLAINED = 100;
const ROWS = 12;

/** What a bit pays above the cheaper of its values. @param {Bits} item @param {[number, number][]} costs @param {number} bit */
const extra = (item, costs, bit) => item.pays[bit] - least(costs[bit]);

/** Bits that pay, dearest first. @param {Bits} item @param {[number, number][]} costs */
function paying(item, costs) {
  return costs
    .map((_, bit) => bit)
    .filter((bit) => extra(item, costs, bit) > 0)
    .sort((a, b) => extra(item, costs, b) - extra(item, costs, a) || a - b);
}

/** @param {{id: string, item: Bits, costs: [number, number][], order: number[]}} props */
function Strip({ id, item, costs, order }) {
  const top = Math.max(...costs.map(weightOf), Number.MIN_VALUE);
  const dear = paying(item, costs);
  const words = dear.slice(0, 3).map((bit) => `bit ${bit} pays ${number(extra(item, costs, bit))}`);
  const said = `#${id} differs from the query in ${dear.length} of ${costs.length} bits${
    words.length ? `; dearest: ${words.join(", ")}` : ""
  }`;
  return html`<svg class="strip" role="img" aria-label=${said} preserveAspectRatio="none"
    viewBox=${`0 0 ${order.length} 10`}>${order.map((bit, place) => {
      const pays = extra(item, costs, bit);
      const high = 2 + (8 * weightOf(costs[bit])) / top;
      return html`<rect x=${place + 0.08} width="0.84" y=${10 - high} height=${high}
        class=${pays > 0 ? "pays" : "free"}><title>bit ${bit}: is ${item.bits[bit]}, weight ${number(
          weightOf(costs[bit]),
        )}, pays ${number(pays)}</title></rect>`;
    })}</svg>`;
}

/** @param {{item: Bits, costs: [number, number][]}} props */
function Table({ item, costs }) {
  const dear = paying(item, costs);
  return html`<details><summary>${dear.length} of ${costs.length} bits pay</summary>
    <div class="wide"><table><thead><tr><th>bit</th><th>weight</th><th>query</th><th>item</th><th>pays</th></tr></thead>
    <tbody>${dear.map(
      (bit) => html`<tr><td>${bit}</td><td>${number(weightOf(costs[bit]))}</td>
        <td>${costs[bit][0] <= costs[bit][1] ? 0 : 1}</td><td>${item.bits[bit]}</td>
        <td>${number(extra(item, costs, bit))}</td></tr>`,
    )}</tbody></table></div></details>`;
}

/** Where two hits differ. @param {{explained: Explained, pair: [string, string], order: number[]}} props */
function Pair({ explained, pair, order }) {
  const { costs, bits } = explained;
  const [one, two] = [bits[pair[0]], bits[pair[1]]];
  const differ = order.filter((bit) => one.bits[bit] !== two.bits[bit]);
  const gap = differ.reduce((sum, bit) => sum + two.pays[bit] - one.pays[bit], 0);
  const verdict =
    gap === 0 ? "both pay the same" : `#${pair[gap > 0 ? 0 : 1]} is nearer by ${number(Math.abs(gap))}`;
  return html`<p class="line" role="status">They differ in ${differ.length} of ${costs.length} bits;
      ${" "}${verdict}.</p>
    <${Strip} id=${pair[0]} item=${one} costs=${costs} order=${order} />
    <${Strip} id=${pair[1]} item=${two} costs=${costs} order=${order} />
    <div class="wide"><table><caption>The heaviest bits in which they differ</caption>
      <thead><tr><th>bit</th><th>weight</th><th>#${pair[0]} pays</th><th>#${pair[1]} pays</th></tr></thead>
      <tbody>${differ.slice(0, ROWS).map(
        (bit) => html`<tr><td>${bit}</td><td>${number(weightOf(costs[bit]))}</td>
          <td>${number(extra(one, costs, bit))}</td><td>${number(extra(two, costs, bit))}</td></tr>`,
      )}</tbody></table></div>`;
}

/** @param {ViewProps} props */
export function Why({ collection, query, k, again }) {
  const request = query && {
    method: "POST",
    path: `${ofCollection(collection)}/explain`,
    body: { ...query, k: Math.min(k, MOST_EXPLAINED), payload: true },
  };
  const found = useAnswer(request, again);
  const answer = /** @type {Explained | null} */ (found.answer);
  const order = useMemo(() => (answer ? byWeight(answer.costs) : []), [answer]);
  const [chosen, setChosen] = useState(/** @type {[string, string]} */ (["", ""]));
  if (!query) return null;
  const ids = answer?.hits.map((hit) => hit.id) ?? [];
  /** @type {[string, string]} */
  const pair = [
    ids.includes(chosen[0]) ? chosen[0] : ids[0],
    ids.includes(chosen[1]) ? chosen[1] : (ids[1] ?? ids[0]),
  ];
  /** @param {0 | 1} side */
  const pick = (side) => html`<label>${side ? "and" : "Compare"}${" "}<select value=${pair[side]}
    onChange=${(/** @type {any} */ event) =>
      setChosen(side ? [pair[0], event.target.value] : [event.target.value, pair[1]])}>
    ${ids.map((id) => html`<option value=${id}>#${id}</option>`)}</select></label>`;
  return html`<div aria-busy=${found.busy}><${Problem} error=${found.error} />
    ${answer && html`<p class="line">Bits from heavy to light, as high as they weigh.
        ${" "}<span class="key pays"></span> differs from the query and pays,
        ${" "}<span class="key free"></span> agrees and is free.</p>
      <ol class="hits">${answer.hits.map((hit) => {
        const item = answer.bits[hit.id];
        return html`<li class="hit" key=${hit.id}><div class="hit-head"><strong class="id">#${hit.id}</strong>
          <span class="title" dir="auto">${label(hit)}</span>
          <span class="distance">distance ${number(hit.distance)}</span></div>
          <${Strip} id=${hit.id} item=${item} costs=${answer.costs} order=${order} />
          <${Table} item=${item} costs=${answer.costs} /></li>`;
      })}</ol>
      ${ids.length > 1 && html`<section aria-labelledby="two"><h2 id="two">Two hits beside each other</h2>
        <p class="row">${pick(0)} ${pick(1)}</p>
        <${Pair} explained=${answer} pair=${pair} order=${order} /></section>`}`}
    <${Snippet} request=${request} /></div>`;
}
