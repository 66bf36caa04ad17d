// @ts-check
// What is typed into the one box, as a query: text, #id, #key or #"key", or a vector as JSON.

const LARGEST_ID = 2n ** 63n - 1n;

/**
 * The query that was typed; raises Error that says what is wrong.
 * @param {string} typed
 * @param {boolean} embedder whether the server takes text
 */
export function queryOf(typed, embedder) {
  const text = typed.trim();
  if (!text) throw new Error("Type what to look for.");
  if (text.startsWith("#")) {
    const name = text.slice(1).trim();
    if (!name) throw new Error("Type an id or a key after #.");
    if (/^".+"$/s.test(name)) return { key: name.slice(1, -1) };
    return /^\d+$/.test(name) && BigInt(name) <= LARGEST_ID ? { id: String(BigInt(name)) } : { key: name };
  }
  if (text.startsWith("[")) return { vector: vectorOf(text) };
  if (!embedder)
    throw new Error("This server has no embedder for text: type #id, or a vector as JSON.");
  return { text };
}

/** @param {string} text */
function vectorOf(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error("A vector is a JSON list of numbers, such as [0.5, -1.25, 3].");
  }
  if (!Array.isArray(found) || !found.length || !found.every((one) => Number.isFinite(one)))
    throw new Error("A vector must have numbers only.");
  return found;
}
