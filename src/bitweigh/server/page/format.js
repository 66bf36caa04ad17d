// @ts-check
// Numbers as people read them.

/**
 * Three digits of a number, whole above 100: 1.23, 12.3, 123.
 * @param {number} value
 */
const three = (value) => (value >= 99.95 ? String(Math.round(value)) : value.toPrecision(3));

/** @param {number} us */
export const microseconds = (us) =>
  us < 999.5 ? `${Math.round(us)} µs` : us < 999_500 ? `${three(us / 1000)} ms` : `${three(us / 1e6)} s`;

/** @param {number} value */
export const number = (value) =>
  Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(4)));

/**
 * A distance; distances of similar size have the same number of decimals, so that a list aligns.
 * @param {number} value
 */
export function distance(value) {
  if (Number.isInteger(value)) return number(value + 0);
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e7) return value.toExponential(3);
  return value.toFixed(size >= 10_000 ? 1 : size >= 100 ? 2 : 4);
}

/** @param {number} part of 1 */
export const percent = (part) =>
  part === 0 ? "0 %" : part < 0.0001 ? "< 0.01 %" : `${Number((100 * part).toPrecision(part < 0.1 ? 2 : 3))} %`;

/** @param {number} bytes */
export function size(bytes) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 999.5 && unit < units.length - 1) [bytes, unit] = [bytes / 1000, unit + 1];
  return `${unit ? three(bytes) : bytes} ${units[unit]}`;
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** @param {number} count @param {string} one @param {string} [many] */
export const counted = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
