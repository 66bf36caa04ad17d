// @ts-check
// The frame of the page: which view, collection and query; the key; whether the server answers.
import { html, render, useCallback, useEffect, useLayoutEffect, useRef, useState } from "./vendor/standalone.module.js";
import { addressOf, hitsOf, MAX_HITS, placeOf } from "./address.js";
import { Problem, Waiting } from "./answer.js";
import { answers, ask, key, listeners } from "./api.js";
import { Begin } from "./begin.js";
import { Create } from "./create.js";
import { number } from "./format.js";
import { Chips } from "./payload.js";
import { queryOf } from "./query.js";
import { Browse } from "./views/browse.js";
import { Health } from "./views/health.js";
import { How } from "./views/how.js";
import { Import } from "./views/import.js";
import { Search } from "./views/search.js";
import { Weights } from "./views/weights.js";
import { Why } from "./views/why.js";

/**
 * A view that asks for a query introduces itself until there is one.
 * @type {Record<string, {view: any, asks?: string, filters?: boolean}>}
 */
const VIEWS = {
  search: { view: Search, asks: "The nearest items, and which of their bits differ from the query.", filters: true },
  why: { view: Why, asks: "Why each hit is near: its bits from heavy to light, and what each pays.", filters: true },
  weights: { view: Weights, asks: "What each bit weighs. Change weights, and the ranking follows at once.", filters: true },
  how: { view: How, asks: "Where the hits lie among all distances, and what the search had to do.", filters: true },
  browse: { view: Browse, filters: true },
  import: { view: Import },
  health: { view: Health },
};
const RETRY_MS = 1000;
// What a header may hold.
const KEY = /^[\x21-\x7e]+$/;

/** @param {string} view */
const titleOf = (view) => view[0].toUpperCase() + view.slice(1);

const placeNow = () => {
  const place = placeOf(location.hash);
  return Object.hasOwn(VIEWS, place.view) ? place : { ...place, view: "search" };
};

/** @param {{wrong: boolean, done: () => void}} props */
function KeyForm({ wrong, done }) {
  const [typed, setTyped] = useState("");
  const box = useRef(null);
  useEffect(() => box.current?.focus(), []);
  return html`<form class="card key-form" onSubmit=${(event) => {
    event.preventDefault();
    key.set(typed.trim());
    done();
  }}><h2>This server asks for a key</h2>
    <p>Its operator makes one with <code>bitweigh serve keys add</code>. This tab remembers yours until it is closed.</p>
    <${Problem} error=${wrong ? "The server does not know this key." : ""} />
    <p class="row"><label class="grow">Key <input type="password" autocomplete="off" ref=${box} value=${typed}
      onInput=${(event) => setTyped(event.target.value)} /></label>
    <button class="main" disabled=${!KEY.test(typed.trim())}>Use it</button></p></form>`;
}

/** @param {BoxProps} props */
function Box({ place, embedder, go, error }) {
  const [typed, setTyped] = useState(place.typed);
  const [k, setK] = useState(String(place.k));
  // Before the next paint: an effect after it would overwrite what was typed in between.
  useLayoutEffect(() => setTyped(place.typed), [place.typed]);
  useLayoutEffect(() => setK(String(place.k)), [place.k]);
  return html`<form class="box" role="search" onSubmit=${(event) => {
    event.preventDefault();
    go({ typed, k: hitsOf(k) });
  }}><label class="grow"><span class="said">What to look for</span>
      <input type="search" dir="auto" value=${typed} placeholder=${`${embedder ? "text, " : ""}#id or [0.5, -1.2, …]`}
        onInput=${(event) => setTyped(event.target.value)} /></label>
    <label>Hits <input type="number" min="1" max=${MAX_HITS} value=${k}
      onInput=${(event) => setK(event.target.value)} /></label>
    <button class="main">Search</button></form><${Problem} error=${error} />`;
}

/** @param {HeaderProps} props */
function Header({ place, collections, go }) {
  return html`<header><h1><a class="brand" href="/"><img src="/page/icon.svg" alt="" width="26" height="26" />bitweigh</a></h1>
    <div class="row aside">${collections.length > 0 && html`<label><span class="said">Collection</span><select
      onChange=${(event) => go({ collection: event.target.value, typed: "", filter: {} })}>
      ${!collections.some(({ name }) => name === place.collection) && html`<option selected disabled>choose one</option>`}
      ${collections.map(({ name, items }) => html`<option key=${name} value=${name} selected=${name === place.collection}>
        ${name} (${number(items)})</option>`)}</select></label>`}
    ${key.get() && html`<button type="button" class="small" onClick=${() => {
      key.forget();
      location.reload();
    }}>Forget the key</button>`}</div>
    <nav aria-label="Views">${Object.keys(VIEWS).map(
      (view) => html`<a key=${view} href=${addressOf({ ...place, view })}
        aria-current=${view === place.view ? "page" : undefined}>${titleOf(view)}</a>`,
    )}</nav></header>`;
}

/**
 * The server's collections, asked for again after changes.
 * @param {number} again
 */
function useServer(again) {
  const [server, setServer] = useState(/** @type {Server} */ ({ about: null, collections: [], error: "" }));
  const look = useCallback(async () => {
    try {
      const about = await ask({ method: "GET", path: "/v1" });
      const { collections } = await ask({ method: "GET", path: "/v1/collections" });
      setServer({ about, collections, error: "" });
    } catch (refused) {
      const { status, message } = refused;
      // A missing key and an unreachable server are reported elsewhere.
      setServer((old) => ({ ...old, error: status === 401 || status === 0 ? "" : message }));
    }
  }, []);
  useEffect(() => {
    look();
  }, [again]);
  useEffect(() => {
    if (!server.error || server.about) return;
    const timer = setTimeout(look, RETRY_MS);
    return () => clearTimeout(timer);
  }, [server]);
  return { ...server, look };
}

function App() {
  const [at, setAt] = useState(placeNow);
  const [needsKey, setNeedsKey] = useState(false);
  const [gone, setGone] = useState(false);
  const [again, setAgain] = useState(0);
  const { about, collections, error, look } = useServer(again);
  const main = useRef(null);
  useEffect(() => {
    listeners.refused = (error) => (error.status === 401 ? setNeedsKey(true) : setGone(true));
    const moved = () => setAt(placeNow());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    if (!gone) return;
    const timer = setInterval(async () => {
      if (!(await answers())) return;
      setGone(false);
      setAgain((count) => count + 1);
    }, RETRY_MS);
    return () => clearInterval(timer);
  }, [gone]);
  const { view: View, asks, filters } = VIEWS[at.view];
  useEffect(() => {
    document.title = `${at.typed && asks ? `${at.typed} · ` : ""}${titleOf(at.view)} · bitweigh`;
  }, [at]);
  const shown = useRef(at);
  useEffect(() => {
    if (shown.current === at) return;
    // The button that was pressed may be gone, and the keyboard's place with it.
    if (document.activeElement === document.body) main.current?.focus({ preventScroll: true });
    if (shown.current.typed !== at.typed || JSON.stringify(shown.current.filter) !== JSON.stringify(at.filter)) scrollTo(0, 0);
    shown.current = at;
  }, [at]);

  const listed = at.collection ? collections.find(({ name }) => name === at.collection) : collections[0];
  useEffect(() => {
    // Collections and their items may have changed since.
    if (about) look();
  }, [at.view, at.collection]);
  const place = { ...at, collection: at.collection || (listed?.name ?? ""), filter: listed?.cluster ? {} : at.filter };
  /** @param {Partial<Place>} change */
  const go = (change) => {
    const next = addressOf({ ...place, ...change });
    // The same query again: the address stays as it is, but the server is asked again.
    if (next === addressOf(placeNow())) setAgain((count) => count + 1);
    else {
      location.hash = next;
      // `hashchange` comes later, and would overwrite what is typed into the box meanwhile.
      setAt(placeNow());
    }
  };
  const query = about && queryAndError(place.typed, about.embedder);
  const props = {
    place, listed, about, query: query?.query ?? null, again, go, reload: look,
    more: (/** @type {string} */ id) => go({ view: "search", typed: `#${id}` }),
    choose: (/** @type {string} */ name, /** @type {any} */ value) => go({ filter: { ...place.filter, [name]: value } }),
  };
  const created = async (/** @type {string} */ name) => {
    await look();
    go({ view: "import", collection: name });
  };
  const content = () => {
    if (needsKey)
      return html`<${KeyForm} wrong=${key.get() !== ""} done=${() => {
        setNeedsKey(false);
        setAgain(again + 1);
      }} />`;
    if (!about) return html`<${Problem} error=${error} /><${Waiting} busy=${!gone && !error} />`;
    if (!listed && at.collection)
      return html`<${Problem} error=${`There is no collection ${at.collection} here, or your key may not read it.`} />`;
    if (!listed)
      return html`<p>${key.get() ? "There are no collections that your key may read." : "This server has no collections yet."}</p>
        <${Create} done=${created} />`;
    return html`
      ${asks && html`<${Box} place=${place} embedder=${about.embedder} go=${go} error=${query?.error ?? ""} />`}
      ${filters && html`<${Chips} filter=${place.filter} change=${(filter) => go({ filter })} />`}
      ${asks && !place.typed && html`<${Begin} key=${listed.name} ...${props} intro=${asks} embedder=${about.embedder} />`}
      <${View} key=${`${at.view} ${listed.name}`} ...${props} />`;
  };
  return html`<a class="skip" href="#main" onClick=${(event) => {
      event.preventDefault();
      main.current?.focus();
    }}>Skip to the content</a>
    <${Header} place=${place} collections=${collections} go=${go} />
    <main id="main" ref=${main} tabindex="-1">
      <div role="status">${gone && html`<p class="problem">The server is not responding.
        ${" "}This page tries again until it responds.</p>`}</div>
      ${content()}
    </main>`;
}

/** @param {string} typed @param {boolean} embedder */
function queryAndError(typed, embedder) {
  if (!typed) return { query: null, error: "" };
  try {
    return { query: queryOf(typed, embedder), error: "" };
  } catch (wrong) {
    return { query: null, error: wrong.message };
  }
}

const root = /** @type {Element} */ (document.getElementById("app"));
root.replaceChildren();
render(html`<${App} />`, root);
