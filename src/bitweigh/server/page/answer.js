// @ts-check
// Answers of the server as the state of a view: the newest one, waiting, and what went wrong.
import { html, useEffect, useRef, useState } from "./vendor/standalone.module.js";
import { ask } from "./api.js";

const NOTHING = { answer: /** @type {any} */ (null), error: "", busy: false, asked: /** @type {string | null} */ (null) };

/**
 * The answer to a request, asked again when the request or `again` changes. The previous answer
 * stays until the new one arrives. While the server does not respond, which the frame says for all
 * views, an answer to the same request stays. Only one request is under way at a time: while a bar
 * is dragged, answers come as fast as the server gives them, and the newest is always answered.
 * @param {Asked | null} request
 * @param {unknown} again
 * @returns {{answer: any, error: string, busy: boolean, fresh: boolean}} `fresh` says that the
 *   answer is to this request, and not to the one before
 */
export function useAnswer(request, again) {
  const [state, setState] = useState(NOTHING);
  const asked = request && JSON.stringify(request);
  const asking = useRef({ busy: false, ended: false, wanted: /** @type {Asked | null} */ (null) });
  useEffect(() => {
    const now = asking.current;
    now.ended = false;
    return () => {
      now.ended = true;
    };
  }, []);
  useEffect(() => {
    const now = asking.current;
    now.wanted = request;
    if (!request) {
      setState(NOTHING);
      return;
    }
    setState((old) => ({ ...old, busy: true }));
    if (!now.busy) askWanted();
  }, [asked, again]);

  const askWanted = async () => {
    const now = asking.current;
    const sent = now.wanted;
    if (!sent || now.ended) return;
    now.busy = true;
    const was = JSON.stringify(sent);
    const found = await ask(sent).then(
      (answer) => ({ answer, error: "" }),
      ({ status, message }) => (status === 0 ? { error: "" } : { answer: null, error: message }),
    );
    now.busy = false;
    if (now.ended || !now.wanted) return;
    const isNewest = now.wanted === sent;
    setState((old) => ({ ...(old.asked === was ? old : NOTHING), ...found, busy: !isNewest, asked: was }));
    if (!isNewest) askWanted();
  };
  return { ...state, fresh: state.asked === asked };
}

/**
 * State that belongs to a query: another query begins with the initial one.
 * @template T
 * @param {unknown} query
 * @param {T} initial
 * @returns {[T, (change: (old: T) => T) => void]}
 */
export function useStateOf(query, initial) {
  const of = JSON.stringify(query);
  const [state, setState] = useState({ of, value: initial });
  /** @param {{of: string, value: T}} one */
  const valueIn = (one) => (one.of === of ? one.value : initial);
  return [valueIn(state), (change) => setState((old) => ({ of, value: change(valueIn(old)) }))];
}

/** @param {{error: string}} props */
export const Problem = ({ error }) =>
  error ? html`<p class="problem" role="alert" dir="auto">${error}</p>` : null;

/**
 * What stands where an answer will be; it appears only if that takes a moment.
 * @param {{busy: boolean, rows?: number}} props
 */
export const Waiting = ({ busy, rows = 4 }) =>
  busy
    ? html`<div class="waiting"><p class="said" role="status">Waiting for the server</p>
        ${Array.from({ length: rows }, () => html`<div class="card ghost"></div>`)}</div>`
    : null;
