// @ts-check
// A form that creates a collection: its name, what its items are, and how long they are.
import { html, useState } from "./vendor/standalone.module.js";
import { Problem } from "./answer.js";
import { ask, ofCollection } from "./api.js";
import { Snippet } from "./snippet.js";

/** @type {Record<string, {title: string, sizes: string[]}>} */
const KINDS = {
  vectors: { title: "float vectors, hashed here", sizes: ["dim", "n_bits"] },
  embeddings: { title: "embeddings, of which the signs are kept", sizes: ["dim"] },
  codes: { title: "packed binary codes", sizes: ["n_bits"] },
};
/** @type {Record<string, string>} */
const SIZES = { dim: "Numbers in a vector", n_bits: "Bits in a code" };
const NAME = "[a-z0-9][a-z0-9_\\-]{0,63}";

/** @param {{done: (name: string) => void}} props */
export function Create({ done }) {
  const [name, setName] = useState("");
  const [kind, setKind] = useState("vectors");
  const [sizes, setSizes] = useState(/** @type {Record<string, string>} */ ({ dim: "", n_bits: "128" }));
  const [error, setError] = useState("");
  const given = Object.fromEntries(KINDS[kind].sizes.map((size) => [size, Number(sizes[size])]));
  // The default hasher makes at most one bit of each number.
  if (kind === "vectors" && given.dim) given.n_bits = Math.min(given.n_bits, given.dim);
  const complete = new RegExp(`^${NAME}$`).test(name) && Object.values(given).every((value) => value > 0);
  const request = { method: "PUT", path: ofCollection(name), body: { kind, ...given } };
  return html`<form class="card create" onSubmit=${async (event) => {
      event.preventDefault();
      try {
        await ask(request);
        done(name);
      } catch (refused) {
        setError(refused.message);
      }
    }}><h2>A new collection</h2><${Problem} error=${error} />
    <div class="fields"><label>Name <input required pattern=${NAME} maxlength="64" value=${name} title="a-z, 0-9, _ and -"
        onInput=${(event) => setName(event.target.value)} /></label>
      <label>Items are <select value=${kind} onChange=${(event) => setKind(event.target.value)}>
        ${Object.entries(KINDS).map(([one, { title }]) => html`<option key=${one} value=${one}>${title}</option>`)}</select></label>
      ${KINDS[kind].sizes.map((size) => html`<label key=${size}>${SIZES[size]}
        ${" "}<input type="number" min="1" max="65536" required value=${kind === "vectors" ? given[size] || sizes[size] : sizes[size]}
          onInput=${(event) => setSizes({ ...sizes, [size]: event.target.value })} /></label>`)}</div>
    <button class="main">Create</button>
    <${Snippet} requests=${[complete ? request : null]} /></form>`;
}
