// @ts-check
// The weights view: the costs of the query as bars that can be dragged or muted, and the ranking
// that follows at once.
import { html, useLayoutEffect, useMemo, useRef, useState } from "../vendor/standalone.module.js";
import { Problem, useAnswer, useStateOf, Waiting } from "../answer.js";
import { byWeight, contrast, hamming, reweighed, weightOf } from "../costs.js";
import { counted, distance, microseconds, number } from "../format.js";
import { Name } from "../hit.js";
import { Summary } from "../payload.js";
import { BY_CODES, costsRequest, explainRequest, othersOf } from "../requests.js";
import { Snippet } from "../snippet.js";

// Bars that fit on a phone; all bits are shown on request.
const SHOWN = 64;
const STEP = 0.1;
const MAX_FACTOR = 2;
const CLICK_PIXELS = 3;
const MOVE_MS = 250;
const AS_ASKED = { factors: /** @type {Factors} */ ({}), power: 1 };

/**
 * Bars as sliders with one stop for the Tab key. Dragged across, they follow the pointer; a click
 * mutes. Arrows left and right go to other bits, up and down change a weight, M mutes.
 * @param {BarsProps} props
 */
function Bars({ weights, order, factors, change }) {
  const [at, setAt] = useState(0);
  const box = useRef(null);
  const drag = useRef(/** @type {Drag | null} */ (null));
  const top = Math.max(...order.map((bit) => weights[bit]), Number.MIN_VALUE);
  /** @param {number} bit */
  const factorOf = (bit) => factors[bit] ?? 1;
  /** @param {number} bit */
  const mute = (bit) => change({ [bit]: factorOf(bit) === 0 ? 1 : 0 });
  /** @param {number} place */
  const focus = (place) => {
    const next = Math.min(order.length - 1, Math.max(0, place));
    setAt(next);
    /** @type {HTMLElement | undefined} */ (box.current?.children[next])?.focus();
  };
  /**
   * A factor that keeps a bar within the chart.
   * @param {number} bit
   * @param {number} factor
   */
  const within = (bit, factor) =>
    weights[bit] > 0 ? Math.round(100 * Math.min((MAX_FACTOR * top) / weights[bit], Math.max(0, factor))) / 100 : 1;
  /** @param {any} event */
  const placeUnder = (event) => {
    const bars = /** @type {HTMLElement} */ (box.current).children;
    const { left } = bars[0].getBoundingClientRect();
    const { right } = bars[order.length - 1].getBoundingClientRect();
    const place = Math.floor((order.length * (event.clientX - left)) / (right - left));
    return Math.min(order.length - 1, Math.max(0, place));
  };
  /** @param {any} event */
  const move = (event) => {
    const now = drag.current;
    if (!now) return;
    if (!now.moved && Math.hypot(event.clientX - now.x, event.clientY - now.y) <= CLICK_PIXELS) return;
    const area = /** @type {HTMLElement} */ (box.current).getBoundingClientRect();
    // A finger that moves sideways scrolls; a mouse draws, in a straight line from where it was.
    const place = event.pointerType === "mouse" ? placeUnder(event) : now.place;
    const steps = Math.abs(place - now.place);
    /** @type {Factors} */
    const drawn = {};
    for (let step = 0; step <= steps; step++) {
      const y = event.clientY + ((now.y - event.clientY) * step) / Math.max(1, steps);
      const bit = order[place + Math.sign(now.place - place) * step];
      drawn[bit] = within(bit, (MAX_FACTOR * top * (area.bottom - y)) / (area.height * weights[bit]));
    }
    change(drawn);
    drag.current = { x: event.clientX, y: event.clientY, place, moved: true };
  };
  /** @param {any} event @param {number} place @param {number} bit */
  const press = (event, place, bit) => {
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => focus(place - 1),
      ArrowRight: () => focus(place + 1),
      Home: () => focus(0),
      End: () => focus(order.length - 1),
      ArrowUp: () => change({ [bit]: within(bit, factorOf(bit) + STEP) }),
      ArrowDown: () => change({ [bit]: within(bit, factorOf(bit) - STEP) }),
      m: () => mute(bit),
      M: () => mute(bit),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  };
  return html`<div class="bars" ref=${box} role="group" aria-label="weights of the query's bits, heaviest first"
    onPointerMove=${move} onPointerCancel=${() => (drag.current = null)}
    onPointerUp=${() => {
      const now = drag.current;
      drag.current = null;
      if (now && !now.moved) mute(order[now.place]);
    }}>${order.map((bit, place) => {
      const factor = factorOf(bit);
      const text = factor === 0 ? "muted" : `weight ${number(factor * weights[bit])}`;
      const high = (100 * factor * weights[bit]) / (MAX_FACTOR * top);
      return html`<div class=${`bar ${factor === 0 ? "muted" : factor === 1 ? "" : "changed"}`} key=${bit}
        role="slider" tabindex=${place === Math.min(at, order.length - 1) ? 0 : -1} aria-orientation="vertical" aria-label=${`bit ${bit}`}
        aria-valuemin="0" aria-valuemax=${Math.round(100 * within(bit, Infinity))} aria-valuenow=${Math.round(100 * factor)}
        aria-valuetext=${text} title=${`bit ${bit}: ${text}`}
        onFocus=${() => setAt(place)} onKeyDown=${(event) => press(event, place, bit)}
        onPointerDown=${(event) => {
          if (event.button !== 0) return;
          drag.current = { x: event.clientX, y: event.clientY, place, moved: false };
          event.currentTarget.setPointerCapture(event.pointerId);
        }}>
        <span class="fill" style=${{ height: `${Math.min(100, high)}%` }}></span></div>`;
    })}</div>`;
}

/**
 * How a hit has moved.
 * @param {string[]} before
 * @param {string} id
 * @param {number} place
 */
function movedBy(before, id, place) {
  const old = before.indexOf(id);
  if (old < 0) return { text: "new", said: "was not among them", kind: "up" };
  if (old === place) return { text: "", said: "as before", kind: "" };
  const steps = Math.abs(old - place);
  return old > place
    ? { text: `▲ ${steps}`, said: `up ${steps}`, kind: "up" }
    : { text: `▼ ${steps}`, said: `down ${steps}`, kind: "down" };
}

/**
 * Hits in their order; those that change places are seen to move.
 * @param {{hits: Hit[], before: string[]}} props
 */
function Ranking({ hits, before }) {
  const list = useRef(null);
  const places = useRef(/** @type {Map<string, number>} */ (new Map()));
  useLayoutEffect(() => {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const now = new Map();
    for (const row of /** @type {HTMLElement[]} */ ([...(list.current?.children ?? [])])) {
      const id = row.dataset.id ?? "";
      const old = places.current.get(id);
      now.set(id, row.offsetTop);
      if (still || old === row.offsetTop || !places.current.size) continue;
      const from = old === undefined ? { opacity: 0 } : { transform: `translateY(${old - row.offsetTop}px)` };
      row.animate([from, { opacity: 1, transform: "none" }], { duration: MOVE_MS, easing: "ease-out" });
    }
    places.current = now;
  }, [hits]);
  return html`<ol class="ranking" ref=${list}>${hits.map((hit, place) => {
    const move = movedBy(before, hit.id, place);
    return html`<li key=${hit.id} data-id=${hit.id}><span class="rank">${place + 1}</span>
      <span class=${`move ${move.kind}`}><span aria-hidden="true">${move.text}</span><span class="said">${move.said}</span></span>
      <${Name} item=${hit} clipped /><${Summary} item=${hit} />
      <span class="distance">${distance(hit.distance)}</span></li>`;
  })}</ol>`;
}

/** @param {ViewProps} props */
export function Weights(props) {
  const { query, again } = props;
  const [{ factors, power }, setChanges] = useStateOf(query, AS_ASKED);
  const [all, setAll] = useState(false);
  const first = useAnswer(explainRequest(props), again);
  const costs = /** @type {Costs | null} */ (first.answer?.costs ?? null);
  const order = useMemo(() => byWeight(costs ?? []), [costs]);
  const contrasted = useMemo(
    () => costs && (power === 0 ? hamming(costs) : reweighed(costs, contrast(costs, power))),
    [costs, power],
  );
  const weights = useMemo(() => contrasted?.map(weightOf) ?? [], [contrasted]);
  const wanted = useMemo(
    () => contrasted && reweighed(contrasted, (weight, bit) => weight * (factors[bit] ?? 1)),
    [contrasted, factors],
  );
  const request = query && wanted ? costsRequest(props, wanted) : null;
  const found = useAnswer(request, again);
  const asked = useAnswer(query && costs ? costsRequest(props, costs) : null, again);
  const { answer } = found;
  // Whether the ranking is one by these costs and changes of them: after another query was asked,
  // that of the query before it is shown until the new one is there.
  const ranked = useRef(/** @type {Costs | null} */ (null));
  if (found.fresh) ranked.current = costs;
  const comparable = asked.fresh && ranked.current === costs;
  const hits = useMemo(() => (answer ? othersOf(props, answer.hits) : []), [answer, props.place.typed]);
  if (!query) return null;
  const before = othersOf(props, (comparable ? asked.answer : answer)?.hits ?? []).map((hit) => hit.id);
  const muted = Object.values(factors).filter((factor) => factor === 0).length;
  const changed = costs?.filter((pair, bit) => wanted && factors[bit] !== 0 && weightOf(pair) !== weightOf(wanted[bit])).length ?? 0;
  const powerText = power === 0 ? "0: plain Hamming" : power === 1 ? "1: as asked" : power.toFixed(1);
  const moved = hits.filter((hit, place) => before[place] !== hit.id).length;
  return html`<div aria-busy=${first.busy}><${Problem} error=${first.error || found.error || asked.error} />
    ${!costs && html`<${Waiting} busy=${first.busy} rows=${2} />`}
    ${costs && html`<p class="line">Drag across the bars to draw other weights; click one to mute its bit.
        ${" "}By keyboard: ← → choose a bit, ↑ ↓ change it, M mutes it.${first.answer.exact ? "" : ` ${BY_CODES}`}</p>
      <${Bars} weights=${weights} order=${all ? order : order.slice(0, SHOWN)} factors=${factors}
        change=${(changes) => setChanges((old) => ({ ...old, factors: { ...old.factors, ...changes } }))} />
      <div class="toolbar">
        <label class="contrast">Contrast <input type="range" min="0" max="3" step="0.1" value=${power}
          aria-valuetext=${powerText}
          onInput=${(event) => setChanges((old) => ({ ...old, power: Number(event.target.value) }))} />
          ${" "}<span class="quiet">${powerText}</span></label>
        <span class="row">${order.length > SHOWN && html`<button type="button" onClick=${() => setAll(!all)}>
            ${all ? `The ${SHOWN} heaviest` : `All ${order.length} bits`}</button>`}
          <button type="button" onClick=${() => setChanges(() => AS_ASKED)}>Reset</button></span></div>`}
    ${answer && !hits.length && html`<p class="empty">There are no hits to rank.</p>`}
    ${hits.length > 0 && html`<p class="line" role="status">${comparable
        ? `${moved} of ${hits.length} places changed · ${counted(changed, "bit")} changed, ${muted} muted · ranked in ${microseconds(answer.engine_us)}`
        : found.busy || asked.busy ? "Ranking…" : ""}</p>
      <${Ranking} hits=${hits} before=${before} />`}
    <${Snippet} requests=${[request]} /></div>`;
}
