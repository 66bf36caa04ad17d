// @ts-check
// Facts as short lists, amounts as bars beside their text, and tables that scroll by themselves.
import { html } from "./vendor/standalone.module.js";

/** @param {{facts: (Fact | false | 0 | null)[]}} props */
export const Facts = ({ facts }) =>
  html`<dl class="facts">${facts.map(
    (fact) => fact && html`<div key=${fact[0]}><dt>${fact[0]}</dt><dd>${fact[1]}</dd></div>`,
  )}</dl>`;

/**
 * Amounts with bars as long as their part of the largest. The text says it all; bars only show it.
 * @param {{amounts: Amount[], label: string}} props
 */
export function Amounts({ amounts, label }) {
  const most = Math.max(...amounts.map((one) => one.amount), Number.MIN_VALUE);
  return html`<dl class="amounts" aria-label=${label}>${amounts.map(
    ({ name, amount, text, kind }) => html`<div key=${name}><dt>${name}</dt><dd>${text}</dd>
      <dd class="track" aria-hidden="true"><span class=${`fill ${kind ?? ""}`}
        style=${{ width: `${Math.max(amount > 0 ? 0.4 : 0, (100 * amount) / most)}%` }}></span></dd></div>`,
  )}</dl>`;
}

/**
 * A table that scrolls where it is wider than the screen, by keyboard too.
 * @param {{label: string, kind?: string, children?: any}} props
 */
export const Table = ({ label, kind, children }) =>
  html`<div class="wide" tabindex="0" role="region" aria-label=${label}><table class=${kind}>${children}</table></div>`;
