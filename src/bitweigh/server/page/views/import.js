// @ts-check
// The import view: a parquet file is dropped, its columns are chosen, and its progress is shown.
import { html, useEffect, useState } from "../vendor/standalone.module.js";
import { Problem } from "../answer.js";
import { ask, ofCollection, upload } from "../api.js";
import { Create } from "../create.js";
import { Table } from "../figures.js";
import { counted, number, size } from "../format.js";
import { schemaOfFile } from "../parquet.js";
import { Snippet } from "../snippet.js";

const VALUES = ["vector", "code", "embedding", "embeddings", "emb", "values"];
const POLL_MS = 250;
// The file that is on its way; this view may be left meanwhile. `part` is -1 if there is none.
const sending = { collection: "", part: -1, error: "", tell: (/** @type {Job | null} */ _) => {} };

/**
 * Payloads are JSON, which has no bytes, and the request separates names by commas.
 * @param {Column} column
 */
const canBePayload = ({ name, type }) => !/binary|int96|uuid|map/.test(type) && !name.includes(",");

/**
 * The choice that names and types suggest.
 * @param {File} file
 * @param {{columns: Column[], rows: number}} schema
 * @returns {Chosen}
 */
function suggested(file, { columns, rows }) {
  /** @param {(column: Column) => boolean} test */
  const first = (test) => columns.find(test)?.name ?? "";
  const value = first(({ name }) => VALUES.includes(name.toLowerCase())) ||
    first(({ type }) => /^list of (float|double)/.test(type)) || first(({ type }) => /binary/.test(type));
  const named = first(({ name }) => name === "id") || first(({ name }) => name === "key");
  const isInteger = (/** @type {Column} */ { type }) => /^int(32|64)$/.test(type);
  const name = named || first(isInteger) || first(({ type }) => type === "text");
  const by = columns.some((column) => column.name === name && !isInteger(column)) ? "key" : "id";
  const payload = columns.filter(canBePayload).map((column) => column.name).filter((one) => ![name, value].includes(one));
  return { file, rows, columns, by, name, value, payload };
}

/** @param {string} collection @param {Chosen} chosen */
function requestOf(collection, { file, by, name, value, payload }) {
  const kept = payload.filter((one) => ![name, value].includes(one));
  const query = new URLSearchParams({ [by]: name, value, payload: kept.join(",") });
  return { method: "POST", path: `${ofCollection(collection)}/import?${query}`, file: file.name };
}

/** @param {{chosen: Chosen, change: (chosen: Chosen) => void}} props */
function Columns({ chosen, change }) {
  const { columns, by, name: named, value, payload } = chosen;
  /** @param {string} text @param {string} now @param {(name: string) => void} set */
  const pick = (text, now, set) => html`<label>${text}${" "}<select value=${now}
    onChange=${(event) => set(event.target.value)}>
    <option value="" disabled=${now !== ""} selected=${now === ""}>choose one</option>
    ${columns.map(({ name, type }) => html`<option key=${name} value=${name} selected=${name === now}>${name} (${type})</option>`)}</select></label>`;
  const rest = columns.filter((column) => canBePayload(column) && ![named, value].includes(column.name));
  return html`<div class="fields">
      <label>Items are named by <select onChange=${(event) => change({ ...chosen, by: event.target.value })}>
        <option value="id" selected=${by === "id"}>ids, which are integers</option>
        <option value="key" selected=${by === "key"}>keys, which are text</option></select></label>
      ${pick(by === "key" ? "Keys" : "Ids", named, (name) => change({ ...chosen, name }))}
      ${pick("Vectors or codes", value, (name) => change({ ...chosen, value: name }))}</div>
    ${rest.length > 0 && html`<fieldset><legend>Payload</legend>${rest.map(
      ({ name, type }) => html`<label key=${name}><input type="checkbox" checked=${payload.includes(name)}
        onChange=${() => change({ ...chosen, payload: payload.includes(name)
          ? payload.filter((one) => one !== name) : [...payload, name] })} /> <bdi>${name}</bdi> <span class="quiet">${type}</span></label>`,
    )}</fieldset>`}`;
}

/** @type {Record<string, string>} */
const STATES = { running: "Importing", done: "Imported", failed: "The import failed", cancelled: "The import was stopped" };

/** @param {{job: Job, stop: () => void}} props */
function Progress({ job, stop }) {
  const left = job.rows - job.done;
  const seconds = job.done && job.state === "running" ? (left * job.seconds) / job.done : 0;
  return html`<section class="card" aria-labelledby="job"><h2 id="job">${STATES[job.state] ?? job.state}</h2>
    <progress max=${Math.max(1, job.rows)} value=${job.done} aria-label="rows imported"></progress>
    <p class="line">${number(job.written)} of ${counted(job.rows, "row")} written, ${number(job.failed)} failed,
      ${" "}${job.seconds.toFixed(1)} s${seconds > 1 ? `, about ${Math.ceil(seconds)} s to go` : ""}</p>
    ${job.state === "running" && html`<button type="button" onClick=${stop}>Stop</button>`}
    <${Problem} error=${job.detail} />
    ${job.errors.length > 0 && html`<${Table} label="rows that failed">
      <caption>Rows that failed${job.failed > job.errors.length ? `, the first ${job.errors.length} of ${number(job.failed)}` : ""}</caption>
      <thead><tr>${Object.keys(job.errors[0]).map((name) => html`<th key=${name}>${name}</th>`)}</tr></thead>
      <tbody>${job.errors.map((error) => html`<tr>${Object.values(error).map(
        (value) => html`<td dir="auto">${String(value)}</td>`)}</tr>`)}</tbody><//>`}</section>`;
}

/** @param {ViewProps} props */
export function Import({ listed, again, go, reload }) {
  const [chosen, setChosen] = useState(/** @type {Chosen | null} */ (null));
  const [, redraw] = useState({});
  const [job, setJob] = useState(/** @type {Job | null} */ (null));
  const [error, setError] = useState("");
  const [over, setOver] = useState(false);
  useEffect(() => {
    if (!job) return;
    if (job.state !== "running") {
      reload();
      return;
    }
    const timer = setTimeout(
      () =>
        ask({ method: "GET", path: `/v1/jobs/${job.id}` }).then(setJob, ({ status, message }) =>
          // A restarted server does not know the job; after any other error it is asked again.
          setJob(status === 404 ? { ...job, state: "failed", detail: message } : { ...job }),
        ),
      POLL_MS,
    );
    return () => clearTimeout(timer);
  }, [job, again]);
  useEffect(() => {
    // An import goes on while other views are looked at.
    ask({ method: "GET", path: "/v1/jobs" }).then(
      ({ jobs }) => {
        const running = jobs.find((/** @type {Job} */ one) => one.collection === listed.name && one.state === "running");
        if (running) setJob((old) => old ?? running);
      },
      () => {},
    );
  }, []);
  useEffect(() => {
    sending.tell = (begun) => {
      if (begun?.collection === listed.name) setJob(begun);
      redraw({});
    };
    return () => {
      sending.tell = () => {};
    };
  }, []);
  /** @param {File | undefined} file */
  const take = async (file) => {
    if (!file) return;
    setJob((old) => (old?.state === "running" ? old : null));
    sending.error = "";
    try {
      setChosen(suggested(file, await schemaOfFile(file)));
      setError("");
    } catch (wrong) {
      setChosen(null);
      setError(wrong.message);
    }
  };
  const request = chosen && requestOf(listed.name, chosen);
  const ready = chosen && chosen.name && chosen.value && sending.part < 0 && job?.state !== "running";
  const start = async () => {
    if (!chosen || !request || !ready) return;
    setError("");
    Object.assign(sending, { collection: listed.name, part: 0, error: "" });
    redraw({});
    let begun = null;
    try {
      begun = await upload(request.path, chosen.file, (part) => {
        sending.part = part;
        sending.tell(null);
      });
    } catch (refused) {
      sending.error = refused.message;
    }
    sending.part = -1;
    sending.tell(begun);
  };
  if (listed.cluster)
    return html`<p class="empty">Clusters are read-only here; <code>bitweigh cluster update</code> changes them.</p>`;
  return html`<div><label class=${`drop ${over ? "over" : ""}`}
      onDragOver=${(event) => { event.preventDefault(); setOver(true); }}
      onDragLeave=${() => setOver(false)}
      onDrop=${(event) => { event.preventDefault(); setOver(false); take(event.dataTransfer.files[0]); }}>
      <strong>Drop a parquet file here</strong>
      <span>or choose one. Its rows are written into <b><bdi>${listed.name}</bdi></b>; items with the same ids or keys are replaced.</span>
      <input type="file" accept=".parquet" onClick=${(event) => (event.target.value = "")} onChange=${(event) => take(event.target.files[0])} /></label>
    <${Problem} error=${error || (sending.collection === listed.name ? sending.error : "")} />
    ${chosen && html`<section class="card"><h2><bdi>${chosen.file.name}</bdi></h2>
      <p class="line">${size(chosen.file.size)}, ${counted(chosen.rows, "row")}, ${counted(chosen.columns.length, "column")}</p>
      <${Columns} chosen=${chosen} change=${setChosen} />
      <button type="button" class="main" aria-disabled=${!ready} onClick=${start}>Import ${counted(chosen.rows, "row")}</button></section>`}
    ${sending.part >= 0 && html`<p class="line">Sending the file: ${Math.round(100 * sending.part)} %</p>`}
    ${job && html`<${Progress} job=${job}
      stop=${() => ask({ method: "DELETE", path: `/v1/jobs/${job.id}` }).then(setJob, (refused) => setError(refused.message))} />`}
    <${Snippet} requests=${[request]} />
    <details class="snippet"><summary>Create another collection</summary>
      <${Create} done=${async (name) => { await reload(); go({ collection: name, typed: "", filter: {} }); }} /></details></div>`;
}
