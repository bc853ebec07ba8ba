// Reads server-sent events out of a stream of text, as the HTML standard has them. Pure.

/** One event. */
export interface StreamEvent {
  /** "" = the stream gave none. */
  readonly id: string;
  readonly name: string;
  readonly data: string;
}

/** Takes text as it arrives, and gives the events that are complete. */
export interface EventParser {
  feed(text: string): readonly StreamEvent[];
  /** How long the service wants to be left alone before a reconnect; null = it did not say. */
  readonly retryMs: () => number | null;
}

/** Longer events are no events of this service: the rest of such a block is dropped. */
const MAX_BLOCK_CHARS = 262_144;

/** Creates a parser. */
export function createEventParser(): EventParser {
  const state = { rest: "", id: "", retryMs: null as number | null };
  return {
    retryMs: () => state.retryMs,
    feed(text) {
      // A carriage return at the end may be the first half of a line's end.
      const blocks = (state.rest + text).replace(/\r\n|\r(?!$)/g, "\n").split("\n\n");
      const rest = blocks.pop() ?? "";
      state.rest = rest.length > MAX_BLOCK_CHARS ? "" : rest;
      return blocks.flatMap((block) => {
        const fields = fieldsOf(block);
        if (fields.id !== null) state.id = fields.id;
        if (fields.retryMs !== null) state.retryMs = fields.retryMs;
        if (fields.data === null) return [];
        return [{ id: state.id, name: fields.name, data: fields.data }];
      });
    },
  };
}

interface Fields {
  readonly id: string | null;
  readonly name: string;
  readonly data: string | null;
  readonly retryMs: number | null;
}

function fieldsOf(block: string): Fields {
  const lines = block.split("\n").filter((line) => line !== "" && !line.startsWith(":"));
  const values = lines.map((line) => {
    const [name = "", ...rest] = line.split(":");
    return { name, value: rest.join(":").replace(/^ /, "") };
  });
  const last = (wanted: string): string | null =>
    values.findLast(({ name }) => name === wanted)?.value ?? null;
  const data = values.filter(({ name }) => name === "data").map(({ value }) => value);
  const retry = last("retry");
  return {
    id: last("id"),
    name: last("event") ?? "message",
    data: data.length === 0 ? null : data.join("\n"),
    retryMs: retry !== null && /^\d{1,6}$/.test(retry) ? Number(retry) : null,
  };
}
