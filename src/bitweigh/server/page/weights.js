// @ts-check
// The weights view: the costs of the query as bars that can be dragged or muted, and the ranking
// that follows at once.
import { html, useEffect, useMemo, useRef, useState } from "./vendor/standalone.module.js";
import { ofCollection } from "./api.js";
import { byWeight, scaled, weightOf } from "./query.js";
import { label, microseconds, number, Problem, Snippet, useAnswer } from "./parts.js";

/** @typedef {import("./search.js").ViewProps} ViewProps */

const SHOWN = 48;
const STEP = 0.1;
const MOST = 2;

/** @param {number} factor */
const clamped = (factor) => Math.round(100 * Math.min(MOST, Math.max(0, factor))) / 100;

/**
 * Bars as sliders with one stop for the Tab key: arrows left and right go to other bits, up and
 * down change a weight, M mutes.
 * @param {{costs: [number, number][], order: number[], factors: Record<number, number>,
 *   change: (bit: number, factor: number) => void}} props
 */
function Bars({ costs, order, factors, change }) {
  const [at, setAt] = useState(0);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const dragged = useRef(-1);
  const top = Math.max(...order.map((bit) => weightOf(costs[bit])), Number.MIN_VALUE);
  /** @param {number} place */
  const focus = (place) => {
    const next = Math.min(order.length - 1, Math.max(0, place));
    setAt(next);
    /** @type {HTMLElement | undefined} */ (box.current?.children[next])?.focus();
  };
  /** @param {any} event @param {number} bit */
  const drag = (event, bit) => {
    const area = event.currentTarget.getBoundingClientRect();
    const weight = (MOST * top * (area.bottom - event.clientY)) / area.height;
    change(bit, clamped(weight / Math.max(weightOf(costs[bit]), Number.MIN_VALUE)));
  };
  /** @param {any} event @param {number} place @param {number} bit */
  const press = (event, place, bit) => {
    const now = factors[bit] ?? 1;
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => focus(place - 1),
      ArrowRight: () => focus(place + 1),
      Home: () => focus(0),
      End: () => focus(order.length - 1),
      ArrowUp: () => change(bit, clamped(now + STEP)),
      ArrowDown: () => change(bit, clamped(now - STEP)),
      m: () => change(bit, now === 0 ? 1 : 0),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  };
  return html`<div class="bars" ref=${box} role="group" aria-label="weights of the query's bits">${order.map(
    (bit, place) => {
      const factor = factors[bit] ?? 1;
      const high = (100 * factor * weightOf(costs[bit])) / (MOST * top);
      return html`<div class=${`bar ${factor === 0 ? "muted" : factor === 1 ? "" : "changed"}`} key=${bit}
        role="slider" tabindex=${place === at ? 0 : -1} aria-orientation="vertical"
        aria-label=${`bit ${bit}`} aria-valuemin="0" aria-valuemax=${100 * MOST}
        aria-valuenow=${Math.round(100 * factor)}
        aria-valuetext=${factor === 0 ? "muted" : `weight ${number(factor * weightOf(costs[bit]))}`}
        title=${`bit ${bit}: weight ${number(factor * weightOf(costs[bit]))}; double click mutes`}
        onFocus=${() => setAt(place)} onKeyDown=${(/** @type {any} */ event) => press(event, place, bit)}
        onDblClick=${() => change(bit, factor === 0 ? 1 : 0)}
        onPointerDown=${(/** @type {any} */ event) => {
          dragged.current = bit;
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove=${(/** @type {any} */ event) => dragged.current === bit && drag(event, bit)}
        onPointerUp=${() => (dragged.current = -1)} onPointerCancel=${() => (dragged.current = -1)}>
        <span class="fill" style=${{ height: `${Math.min(100, high)}%` }}></span></div>`;
    },
  )}</div>`;
}

/** How a hit has moved. @param {string[]} before @param {string} id @param {number} place */
function moved(before, id, place) {
  const old = before.indexOf(id);
  if (old < 0) return { text: "new", said: "was not among them", sort: "up" };
  if (old === place) return { text: "=", said: "as before", sort: "" };
  const steps = Math.abs(old - place);
  return old > place
    ? { text: `▲ ${steps}`, said: `up ${steps}`, sort: "up" }
    : { text: `▼ ${steps}`, said: `down ${steps}`, sort: "down" };
}

/** @param {ViewProps} props */
export function Weights({ collection, query, k, again }) {
  const path = ofCollection(collection);
  const [factors, setFactors] = useState(/** @type {Record<number, number>} */ ({}));
  const [all, setAll] = useState(false);
  useEffect(() => setFactors({}), [collection, JSON.stringify(query)]);
  const first = useAnswer(
    query && { method: "POST", path: `${path}/explain`, body: { ...query, k: Math.min(k, 100), bins: 1 } },
    again,
  );
  /** @type {[number, number][] | undefined} */
  const costs = first.answer?.costs;
  const order = useMemo(() => (costs ? byWeight(costs) : []), [costs]);
  const request = query && costs
    ? { method: "POST", path: `${path}/search`, body: { costs: scaled(costs, factors), k, payload: true } }
    : null;
  const { answer, error } = useAnswer(request, again);
  if (!query) return null;
  const before = first.answer?.hits.map((/** @type {any} */ hit) => hit.id) ?? [];
  const changed = Object.values(factors).filter((factor) => factor !== 1).length;
  return html`<div aria-busy=${first.busy}><${Problem} error=${first.error || error} />
    ${costs && html`<p class="line">Drag a bar, or double click to mute its bit. By keyboard: ← → choose a bit,
        ${" "}↑ ↓ change its weight, M mutes it.</p>
      <${Bars} costs=${costs} order=${all ? order : order.slice(0, SHOWN)} factors=${factors}
        change=${(/** @type {number} */ bit, /** @type {number} */ factor) =>
          setFactors((old) => ({ ...old, [bit]: factor }))} />
      <p class="row">${order.length > SHOWN && html`<button type="button" onClick=${() => setAll(!all)}>
          ${all ? `The ${SHOWN} heaviest` : `All ${order.length} bits`}</button>`}
        <button type="button" disabled=${!changed} onClick=${() => setFactors({})}>Reset</button>
        <span class="quiet">${changed} of ${order.length} changed</span></p>`}
    ${answer && html`<p class="line" role="status">Ranked in ${microseconds(answer.engine_us)}:
        ${" "}${answer.hits.filter((/** @type {any} */ hit, /** @type {number} */ place) => before[place] !== hit.id).length}
        ${" "}of ${answer.hits.length} places changed</p>
      <ol class="ranking">${answer.hits.map((/** @type {any} */ hit, /** @type {number} */ place) => {
        const move = moved(before, hit.id, place);
        return html`<li key=${hit.id}><span class="rank">${place + 1}</span><strong class="id">#${hit.id}</strong>
          <span class="title" dir="auto">${label(hit)}</span>
          <span class="distance">${number(hit.distance)}</span>
          <span class=${`move ${move.sort}`}><span aria-hidden="true">${move.text}</span>
            <span class="said">${move.said}</span></span></li>`;
      })}</ol>`}
    <${Snippet} request=${request} /></div>`;
}
