// @ts-check
// The columns of a parquet file and how many rows it has, read from its footer: Thrift's compact
// protocol, as far as that needs it.

const MAX_FOOTER = 16 << 20;
const MAX_NODES = 50_000;
const STOP = 0;
const [TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT] = [1, 2, 3, 7, 8, 9, 10, 11, 12];
const MAX_DEPTH = 32;
const TYPES = ["bool", "int32", "int64", "int96", "float", "double", "binary", "fixed binary"];
// What values mean that are not what they look like: in files of old writers, and of new ones.
const CONVERTED = ["text", "map", "", "list"];
/** @type {Record<number, string>} */
const LOGICAL = { 1: "text", 2: "map", 3: "list", 4: "text", 5: "decimal", 6: "date", 7: "time", 8: "timestamp", 12: "json", 14: "uuid" };

class Reader {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  byte() {
    if (this.at >= this.bytes.length) throw new Error("the footer ends early");
    return this.bytes[this.at++];
  }

  /** An unsigned number; lengths and places are far below 2^53. */
  varint() {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.byte();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      if (scale > 2 ** 63) throw new Error("a number is too long");
    }
  }

  zigzag() {
    const value = this.varint();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }

  text() {
    const length = this.varint();
    const end = this.at + length;
    if (end > this.bytes.length) throw new Error("the footer ends early");
    // A name may begin with a byte order mark, and is another one without it.
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.bytes.subarray(this.at, end));
    this.at = end;
    return text;
  }

  /** @returns {[number, number]} how many elements, and of which type */
  listHead() {
    const head = this.byte();
    return [head >> 4 === 15 ? this.varint() : head >> 4, head & 15];
  }

  /**
   * Pass over a value.
   * @param {number} type
   * @param {number} [depth]
   */
  skip(type, depth = 0) {
    if (depth > MAX_DEPTH) throw new Error("the footer is nested too deeply");
    if (type === TRUE || type === FALSE) return;
    if (type === BYTE) this.byte();
    else if (type === DOUBLE) this.at += 8;
    else if (type === BINARY) this.text();
    else if (type === LIST || type === SET) {
      const [count, of] = this.listHead();
      // In a list a truth value takes a byte of its own.
      for (let left = count; left > 0; left--) of <= FALSE ? this.byte() : this.skip(of, depth + 1);
    } else if (type === STRUCT) this.fields((_, of) => this.skip(of, depth + 1));
    else if (type === MAP) throw new Error("a map is not expected here");
    else this.varint();
    if (this.at > this.bytes.length) throw new Error("the footer ends early");
  }

  /**
   * Call `read` for each field of a struct; it must read or skip the value.
   * @param {(id: number, type: number) => void} read
   */
  fields(read) {
    for (let id = 0; ; ) {
      const head = this.byte();
      if (head === STOP) return;
      id = head >> 4 ? id + (head >> 4) : this.zigzag();
      read(id, head & 15);
    }
  }
}

/** @param {Reader} reader */
function elementOf(reader) {
  const element = { name: "", type: -1, children: 0, meaning: "" };
  reader.fields((field, of) => {
    if (field === 4 && of === BINARY) element.name = reader.text();
    else if (field === 1) element.type = reader.zigzag();
    else if (field === 5) element.children = reader.zigzag();
    else if (field === 6) element.meaning = CONVERTED[reader.zigzag()] ?? "";
    else if (field === 10 && of === STRUCT)
      reader.fields((kind, type) => {
        element.meaning = LOGICAL[kind] ?? element.meaning;
        reader.skip(type);
      });
    else reader.skip(of);
  });
  return element;
}

/**
 * Columns are the root's children in a tree that is stored depth first.
 * @param {SchemaNode[]} schema
 */
function columnsIn(schema) {
  const columns = [];
  let at = 1;
  /** @returns {string} the type of the first leaf */
  const leaf = () => {
    const { children, type, meaning } = schema[at++] ?? { children: 0, type: -1, meaning: "" };
    let found = children ? "" : meaning || (TYPES[type] ?? "");
    for (let left = children; left > 0 && at < schema.length; left--) {
      const below = leaf();
      found ||= below;
    }
    return found;
  };
  while (at < schema.length) {
    const { name, children, meaning } = schema[at];
    const type = leaf();
    columns.push({ name, type: !children ? type : meaning === "list" ? `list of ${type}` : meaning || "struct" });
  }
  return columns;
}

/** @param {Uint8Array} footer a FileMetaData */
export function schemaOf(footer) {
  const reader = new Reader(footer);
  /** @type {SchemaNode[]} */
  const schema = [];
  let rows = 0;
  reader.fields((id, type) => {
    if (id === 3) rows = reader.zigzag();
    else if (id !== 2 || type !== LIST) reader.skip(type);
    else {
      const [count] = reader.listHead();
      if (count > MAX_NODES) throw new Error("it has too many columns");
      for (let left = count; left > 0; left--) schema.push(elementOf(reader));
    }
  });
  return { columns: columnsIn(schema), rows };
}

/**
 * Columns and rows of a file; raises Error if it is no parquet file.
 * @param {File} file
 */
export async function schemaOfFile(file) {
  const tail = new Uint8Array(await file.slice(-8).arrayBuffer());
  const magic = new TextDecoder().decode(tail.subarray(4));
  if (tail.length < 8 || magic !== "PAR1") throw new Error(`${file.name} is not a parquet file.`);
  const length = new DataView(tail.buffer).getUint32(0, true);
  if (length + 8 > file.size) throw new Error(`${file.name} is damaged: its footer does not fit.`);
  if (length > MAX_FOOTER) throw new Error(`${file.name} has a larger footer than this page reads.`);
  try {
    return schemaOf(new Uint8Array(await file.slice(-8 - length, -8).arrayBuffer()));
  } catch (error) {
    throw new Error(`${file.name} is damaged: ${error.message}.`);
  }
}
