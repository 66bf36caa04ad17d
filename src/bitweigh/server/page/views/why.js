// @ts-check
// The why view: the bits of each hit in descending weight, what each pays, and two hits compared.
import { html, useEffect, useMemo, useState } from "../vendor/standalone.module.js";
import { Problem, useAnswer, useStateOf, Waiting } from "../answer.js";
import { isEmpty } from "../address.js";
import { ofCollection } from "../api.js";
import { askedFor, byWeight, extraOf, leastOf, payingBits, sumOf, weightOf } from "../costs.js";
import { Table } from "../figures.js";
import { counted, distance, number, percent } from "../format.js";
import { Hit } from "../hit.js";
import { titleOf } from "../payload.js";
import { BY_CODES, explainRequest } from "../requests.js";
import { Snippet } from "../snippet.js";
import { Legend, Strip } from "../strip.js";

// Rows of a table of bits, and of the comparison of two hits.
const MAX_ROWS = 64;
const MAX_PAIRED = 14;

/** @param {{item: Bits, costs: Costs}} props */
function Paying({ item, costs }) {
  const [open, setOpen] = useState(false);
  const paying = useMemo(() => payingBits(item, costs), [item, costs]);
  const paid = paying.reduce((sum, bit) => sum + extraOf(item, costs, bit), 0);
  const all = costs.reduce((sum, pair) => sum + weightOf(pair), 0);
  return html`<details class="paying" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${number(paying.length)} of ${counted(costs.length, "bit")} ${paying.length === 1 ? "pays" : "pay"} ${number(paid)}${all > 0
      ? html`, ${percent(paid / all)}<span class="on-wide"> of the total</span>` : ""}</summary>
    ${open && html`<${Table} label="bits that pay">
      <thead><tr><th>bit</th><th class="num">weight</th><th class="num">query</th><th class="num">item</th><th class="num">pays</th></tr></thead>
      <tbody>${paying.slice(0, MAX_ROWS).map(
        (bit) => html`<tr key=${bit}><td>${bit}</td><td class="num">${number(weightOf(costs[bit]))}</td>
          <td class="num">${askedFor(costs[bit])}</td><td class="num">${item.bits[bit]}</td>
          <td class="num">${number(extraOf(item, costs, bit))}</td></tr>`,
      )}</tbody>${paying.length > MAX_ROWS && html`<tfoot><tr><td colspan="5">and ${counted(paying.length - MAX_ROWS, "more bit")}</td></tr></tfoot>`}<//>`}
    </details>`;
}

/**
 * Where two items differ: each such bit is paid by one of them.
 * @param {PairProps} props
 */
function Pair({ explained, pair, order }) {
  const { costs, bits } = explained;
  const [one, two] = [bits[pair[0].id], bits[pair[1].id]];
  const differ = order.filter((bit) => one.bits[bit] !== two.bits[bit]);
  const gap = sumOf(two.pays) - sumOf(one.pays);
  /** @param {Bits} item */
  const paidBy = (item) => differ.reduce((sum, bit) => sum + extraOf(item, costs, bit), 0);
  const nearer = titleOf(pair[gap > 0 ? 0 : 1]);
  const heaviest = Math.max(...differ.map((bit) => weightOf(costs[bit])), Number.MIN_VALUE);
  /** @param {Bits} item @param {number} bit */
  const bar = (item, bit) => {
    const pays = extraOf(item, costs, bit);
    return html`${pays > 0 && html`<span class="fill pays" style=${{ width: `${(100 * pays) / heaviest}%` }}></span>`}
      <span class="said">${number(pays)}</span>`;
  };
  return html`<p class="line" role="status">They differ in ${number(differ.length)} of ${counted(costs.length, "bit")}. ${gap === 0
      ? "Both are equally near."
      : html`<bdi>${nearer}</bdi> is nearer by ${distance(Math.abs(gap))}.`}</p>
    ${differ.length > 0 && html`<table class="butterfly"><caption class="said">The heaviest bits in which they differ, and which of the two pays</caption>
      <thead><tr><th><bdi class="clipped">${titleOf(pair[0])}</bdi></th><th>bit</th>
        <th><bdi class="clipped">${titleOf(pair[1])}</bdi></th></tr></thead>
      <tbody>${differ.slice(0, MAX_PAIRED).map(
        (bit) => html`<tr key=${bit} title=${`bit ${bit} weighs ${number(weightOf(costs[bit]))}`}>
          <td>${bar(one, bit)}</td><th scope="row">${bit}</th><td>${bar(two, bit)}</td></tr>`,
      )}
      ${differ.length > MAX_PAIRED && html`<tr class="quiet"><td colspan="3">and ${counted(differ.length - MAX_PAIRED, "more bit")}</td></tr>`}
      <tr class="sum"><td>${number(paidBy(one))}</td><th scope="row">in all</th><td>${number(paidBy(two))}</td></tr></tbody></table>`}`;
}

/**
 * Two of the items side by side, of which the newest is one.
 * @param {CompareProps} props
 */
function Compare({ explained, shown, order, newest }) {
  const [chosen, setChosen] = useState(/** @type {[string, string]} */ (["", ""]));
  const ids = shown.map((item) => item.id);
  useEffect(() => {
    if (newest !== undefined) setChosen(([one]) => [one === newest ? "" : one, newest]);
  }, [newest]);
  const first = ids.includes(chosen[0]) ? chosen[0] : ids.find((id) => id !== chosen[1]) ?? ids[0];
  const other = ids.includes(chosen[1]) ? chosen[1] : ids.find((id) => id !== first) ?? ids[1];
  /** @type {[string, string]} */
  const pair = [first, other];
  /** @param {0 | 1} side */
  const pick = (side) => html`<select aria-label=${side ? "the other item" : "one item"} value=${pair[side]}
    onChange=${(event) =>
      setChosen(side ? [pair[0], event.target.value] : [event.target.value, pair[1]])}>
    ${shown.map((item, at) => html`<option key=${item.id} value=${item.id} selected=${item.id === pair[side]}>
      ${at + 1}. ${titleOf(item).slice(0, 40)}</option>`)}</select>`;
  const [one, two] = pair.map((id) => shown[ids.indexOf(id)]);
  return html`<section class="card compare" aria-labelledby="compare"><h2 id="compare">Side by side</h2>
    <p class="row">${pick(0)} ${pick(1)}</p>
    <${Pair} explained=${explained} pair=${[one, two]} order=${order} /></section>`;
}

/** @param {{add: (id: string) => void}} props */
function Another({ add }) {
  const [typed, setTyped] = useState("");
  const id = typed.trim().replace(/^#/, "");
  return html`<form class="row another" onSubmit=${(event) => {
      event.preventDefault();
      add(String(BigInt(id)));
      setTyped("");
    }}><label>Why is this item not a hit? <input inputmode="numeric" placeholder="#id" value=${typed} size="12"
      onInput=${(event) => setTyped(event.target.value)} /></label>
    <button type="submit" disabled=${!/^\d+$/.test(id)}>Show it</button></form>`;
}

/** @param {ViewProps} props */
export function Why(props) {
  const { query, listed, again, more } = props;
  const [others, setOthers] = useStateOf(query, /** @type {string[]} */ ([]));
  const request = explainRequest(props, others.length ? { ids: others } : {});
  const { answer, error, busy } = useAnswer(request, again);
  const explained = /** @type {Explained | null} */ (answer);
  const order = useMemo(() => byWeight(explained?.costs ?? []), [explained]);
  const hits = explained?.hits ?? [];
  const apart = others.filter((id) => explained?.bits[id] && !hits.some((hit) => hit.id === id));
  const known = useAnswer(
    apart.length && !listed.cluster
      ? { method: "POST", path: `${ofCollection(listed.name)}/items/get`, body: { ids: apart } }
      : null,
    again,
  ).answer;
  if (!query) return null;
  if (error && others.length)
    return html`<${Problem} error=${error} />
      <button type="button" onClick=${() => setOthers((old) => old.slice(0, -1))}>Back to the hits</button>`;
  if (!explained) return html`<${Problem} error=${error} /><${Waiting} busy=${busy} />`;
  const { costs, bits } = explained;
  /** @type {Shown[]} */
  const added = apart.map((id) => ({
    ...(known?.items.find((/** @type {any} */ item) => item.id === id) ?? { id }),
    distance: sumOf(bits[id].pays),
  }));
  const shown = [...hits.map((hit) => /** @type {Shown} */ (hit)), ...added];
  const base = sumOf(costs.map(leastOf));
  const last = hits[hits.length - 1]?.distance ?? Infinity;
  const filtered = !isEmpty(props.place.filter);
  /** @param {Shown} item */
  const isAsked = ({ id, key }) => id === query.id || (key !== undefined && key === query.key);
  /** @param {Shown} item */
  const reasonOf = (item) =>
    isAsked(item) ? "the item that was asked for" : filtered && (hits.length < props.place.k || (item.distance ?? Infinity) < last)
      ? "left out by the filter" : `not among the ${counted(hits.length, "hit")}`;
  /** @param {Shown} item @param {number} at */
  const asked = (item, at) =>
    others.includes(item.id) ? html`<span class="mark">it is a hit, rank ${at + 1}</span>` : null;
  return html`<div aria-busy=${busy}><${Problem} error=${error} />
    <p class="line"><${Legend} costs=${costs} /> ${base === 0
      ? "A distance is what the red bits pay."
      : `No code can be nearer than ${distance(base)}; a distance is that plus what the red bits pay.`}
      ${explained.exact ? "" : ` ${BY_CODES}`}</p>
    ${!hits.length && html`<p class="empty">There are no hits to explain.</p>`}
    <div class=${shown.length > 1 ? "split" : ""}>
      <ol class="hits">${shown.map((item, at) => html`<${Hit} key=${item.id} item=${item} brief more=${more}
          rank=${at < hits.length ? at + 1 : "–"} mark=${at < hits.length ? asked(item, at) : html`<span class="mark alone">${reasonOf(item)}</span>`}>
          <${Strip} id=${item.id} item=${bits[item.id]} costs=${costs} order=${order} />
          <${Paying} item=${bits[item.id]} costs=${costs} /><//>`)}</ol>
      ${shown.length > 1 && html`<${Compare} explained=${explained} shown=${shown} order=${order} newest=${others.at(-1)} />`}</div>
    ${hits.length > 0 && html`<${Another} add=${(id) =>
      setOthers((old) => [...old.filter((one) => one !== id), id])} />`}
    <${Snippet} requests=${[request]} /></div>`;
}
