// Cuts a JSON array into its elements while its bytes arrive. Follows brackets and strings only: an
// element is judged by its reader, and whose answer it is follows from its id.
import { CLOSE_ARRAY, COMMA, OPEN_ARRAY, OPEN_OBJECT, skipSpace } from "./json.ts";
import { ValueScan } from "./value-scan.ts";

/**
 * Receives a piece of an element, by its offsets in the chunk; `isLast`: the element ends with it.
 * False = nothing more is cut.
 */
export type PieceSink = (start: number, end: number, isLast: boolean) => boolean;

/**
 * Where the bytes so far end. `start`: before the array. `element`: within one. `between`: within
 * the array, but in no element. `closed`: the array is complete. `other`: the bytes do not begin
 * with an array. `malformed`: they are no array of objects.
 */
export type ArrayProgress = "start" | "element" | "between" | "closed" | "other" | "malformed";

/** Cuts one array of objects. */
export class ArrayCutter {
  progress: ArrayProgress = "start";
  /** What may come between elements. */
  #awaits: "first" | "element" | "comma" = "first";
  /** The element that has begun; null = none has. */
  #element: ValueScan | null = null;

  /** Cuts the next bytes of the body. */
  take(chunk: Buffer, sink: PieceSink): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#element !== null) {
        const end = this.#element.take(chunk, at);
        if (!sink(at, end === -1 ? chunk.length : end, end !== -1)) return;
        if (end === -1) return;
        this.#element = null;
        this.progress = "between";
        at = end;
        continue;
      }
      at = skipSpace(chunk, at, chunk.length);
      if (at === chunk.length || this.progress === "other" || this.progress === "malformed") return;
      at = this.#between(chunk[at], at);
    }
  }

  /** Takes the byte at `at`, which is in no element; returns where to go on. */
  #between(byte: number | undefined, at: number): number {
    const awaits = this.#awaits;
    if (this.progress === "start") this.progress = byte === OPEN_ARRAY ? "between" : "other";
    else if (byte === OPEN_OBJECT && this.progress === "between" && awaits !== "comma") {
      this.progress = "element";
      this.#element = ValueScan.of(byte);
      this.#awaits = "comma";
      return at;
    } else if (byte === COMMA && this.progress === "between" && awaits === "comma")
      this.#awaits = "element";
    else if (byte === CLOSE_ARRAY && this.progress === "between" && awaits !== "element")
      this.progress = "closed";
    else this.progress = "malformed";
    return at + 1;
  }
}
