// @ts-check
// The import view: a parquet file is dropped, its columns are chosen, and its progress is shown.
import { html, useEffect, useState } from "./vendor/standalone.module.js";
import { ask, ofCollection, upload } from "./api.js";
import { columnsOfFile } from "./parquet.js";
import { number, Problem, size, Snippet } from "./parts.js";

/**
 * @typedef {import("./api.js").Job} Job
 * @typedef {import("./search.js").ViewProps} ViewProps
 * @typedef {{file: File, names: string[], id: string, key: string, value: string, payload: string[]}} Chosen
 */

const VALUES = ["vector", "code", "embedding", "emb", "values"];

/** The choice that names suggest. @param {File} file @param {string[]} names @returns {Chosen} */
function suggested(file, names) {
  const key = names.includes("id") || !names.includes("key") ? "" : "key";
  const id = key ? "" : names.includes("id") ? "id" : (names[0] ?? "");
  const value = names.find((name) => VALUES.includes(name)) ?? names[names.length - 1] ?? "";
  return { file, names, id, key, value, payload: names.filter((name) => ![id, key, value].includes(name)) };
}

/** @param {string} collection @param {Chosen} chosen */
function requestOf(collection, { file, id, key, value, payload }) {
  const query = new URLSearchParams({ ...(key ? { key } : { id }), value, payload: payload.join(",") });
  return { method: "POST", path: `${ofCollection(collection)}/import?${query}`, file: file.name };
}

/** @param {{chosen: Chosen, change: (chosen: Chosen) => void}} props */
function Columns({ chosen, change }) {
  /** @param {string} text @param {"id" | "key" | "value"} field @param {string} none */
  const pick = (text, field, none) => html`<label>${text}${" "}<select value=${chosen[field]}
    onChange=${(/** @type {any} */ event) => change({ ...chosen, [field]: event.target.value })}>
    ${none && html`<option value="">${none}</option>`}
    ${chosen.names.map((name) => html`<option value=${name}>${name}</option>`)}</select></label>`;
  const rest = chosen.names.filter((name) => ![chosen.id, chosen.key, chosen.value].includes(name));
  return html`<p class="row">${pick("Ids", "id", "none")} ${pick("Keys", "key", "none")}
      ${pick("Vectors or codes", "value", "")}</p>
    ${rest.length > 0 && html`<fieldset><legend>Payload</legend>${rest.map(
      (name) => html`<label class="check"><input type="checkbox" checked=${chosen.payload.includes(name)}
        onChange=${() => change({ ...chosen, payload: chosen.payload.includes(name)
          ? chosen.payload.filter((one) => one !== name) : [...chosen.payload, name] })} /> <bdi>${name}</bdi></label>`,
    )}</fieldset>`}`;
}

/** @param {{job: Job, stop: () => void}} props */
function Progress({ job, stop }) {
  return html`<section aria-labelledby="job"><h2 id="job">Import ${job.state}</h2>
    <progress max=${Math.max(1, job.rows)} value=${job.done} aria-label="rows imported"></progress>
    <p class="line" role="status">${number(job.written)} of ${number(job.rows)} rows written,
      ${" "}${number(job.failed)} failed, ${job.seconds.toFixed(1)} s</p>
    ${job.state === "running" && html`<button type="button" onClick=${stop}>Stop</button>`}
    <${Problem} error=${job.detail} />
    ${job.errors.length > 0 && html`<div class="wide"><table><caption>Rows that failed${
        job.failed > job.errors.length ? `, the first ${job.errors.length} of ${number(job.failed)}` : ""}</caption>
      <thead><tr>${Object.keys(job.errors[0]).map((name) => html`<th>${name}</th>`)}</tr></thead>
      <tbody>${job.errors.map((error) => html`<tr>${Object.values(error).map(
        (value) => html`<td dir="auto">${String(value)}</td>`)}</tr>`)}</tbody></table></div>`}</section>`;
}

/** @param {ViewProps} props */
export function Import({ collection, again }) {
  const [chosen, setChosen] = useState(/** @type {Chosen | null} */ (null));
  const [sent, setSent] = useState(-1);
  const [job, setJob] = useState(/** @type {Job | null} */ (null));
  const [error, setError] = useState("");
  const [over, setOver] = useState(false);
  useEffect(() => {
    if (job?.state !== "running") return undefined;
    const timer = setTimeout(
      () => ask({ method: "GET", path: `/v1/jobs/${job.id}` }).then(setJob, (refused) => setError(refused.message)),
      300,
    );
    return () => clearTimeout(timer);
  }, [job, again]);
  /** @param {File | undefined} file */
  const take = async (file) => {
    if (!file) return;
    setJob(null);
    try {
      setChosen(suggested(file, await columnsOfFile(file)));
      setError("");
    } catch (wrong) {
      setChosen(null);
      setError(/** @type {Error} */ (wrong).message);
    }
  };
  const request = chosen && requestOf(collection, chosen);
  const start = async () => {
    if (!chosen || !request) return;
    setError("");
    setSent(0);
    try {
      setJob(await upload(request.path, chosen.file, setSent));
    } catch (refused) {
      setError(/** @type {Error} */ (refused).message);
    }
    setSent(-1);
  };
  return html`<div><h2>Import</h2>
    <label class=${`drop ${over ? "over" : ""}`}
      onDragOver=${(/** @type {any} */ event) => { event.preventDefault(); setOver(true); }}
      onDragLeave=${() => setOver(false)}
      onDrop=${(/** @type {any} */ event) => { event.preventDefault(); setOver(false); take(event.dataTransfer.files[0]); }}>
      <span>Drop a parquet file here, or choose one: its rows are written into <bdi>${collection}</bdi>.</span>
      <input type="file" accept=".parquet" onChange=${(/** @type {any} */ event) => take(event.target.files[0])} /></label>
    <${Problem} error=${error} />
    ${chosen && html`<p class="line"><bdi>${chosen.file.name}</bdi>, ${size(chosen.file.size)}, ${chosen.names.length} columns</p>
      <${Columns} chosen=${chosen} change=${setChosen} />
      <button type="button" class="main" disabled=${sent >= 0 || job?.state === "running" || !(chosen.id || chosen.key)}
        onClick=${start}>Import</button>
      ${sent >= 0 && html`<p class="line" role="status">sending, ${Math.round(100 * sent)} %</p>`}`}
    ${job && html`<${Progress} job=${job}
      stop=${() => ask({ method: "DELETE", path: `/v1/jobs/${job.id}` }).then(setJob, (refused) => setError(refused.message))} />`}
    <${Snippet} request=${request} /></div>`;
}
