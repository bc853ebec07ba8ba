// Puts short requests together: head, length, and body under the id of the service. One piece of
// memory serves the requests of a pool, since each is in the kernel before the next one is made.

/**
 * A request body; when it is written, the text from `idStart` to `idEnd` is replaced by `id`
 * (ASCII).
 */
export interface RequestBody {
  readonly bytes: Buffer;
  readonly id: string;
  readonly idStart: number;
  readonly idEnd: number;
}

const FIRST_BYTES = 4_096;
/** Up to this size a loop copies faster than a call to `Buffer.copy`. */
const NEAR_BYTES = 48;
const AFTER_LENGTH = Buffer.from("\r\n\r\n", "latin1");
const ZERO = 0x30;

/** The memory that requests are put together in; it grows with the longest one. */
export class RequestWriter {
  #memory = Buffer.allocUnsafeSlow(FIRST_BYTES);

  /**
   * The bytes of a request; `head` ends with `content-length: `. They are valid until the next
   * call, unless `leave` is called before.
   */
  bytesOf(head: Buffer, body: RequestBody): Buffer {
    const { bytes, id, idStart, idEnd } = body;
    const length = bytes.length - (idEnd - idStart) + id.length;
    const lengthEnd = head.length + digitsOf(length);
    const bodyAt = lengthEnd + AFTER_LENGTH.length;
    const end = bodyAt + length;
    if (end > this.#memory.length) this.#memory = Buffer.allocUnsafeSlow(end);
    const memory = this.#memory;
    memory.set(head);
    writeNumber(memory, lengthEnd, length);
    memory.set(AFTER_LENGTH, lengthEnd);
    writeBody(memory, bodyAt, body);
    return memory.subarray(0, end);
  }

  /** Leaves the memory to the request made last, which is not in the kernel yet. */
  leave(): void {
    this.#memory = Buffer.allocUnsafeSlow(FIRST_BYTES);
  }
}

function writeBody(memory: Buffer, at: number, { bytes, id, idStart, idEnd }: RequestBody): void {
  const idAt = at + idStart;
  const longer = id.length - (idEnd - idStart);
  if (longer >= 0 && idStart <= NEAR_BYTES) {
    // One copy puts what follows the id where it belongs; what precedes it is written again.
    memory.set(bytes, at + longer);
    for (let from = 0; from < idStart; from++) memory[at + from] = bytes[from] ?? 0;
  } else {
    bytes.copy(memory, at, 0, idStart);
    bytes.copy(memory, idAt + id.length, idEnd);
  }
  for (let digit = 0; digit < id.length; digit++) memory[idAt + digit] = id.charCodeAt(digit);
}

function digitsOf(number: number): number {
  let digits = 1;
  for (let rest = number; rest >= 10; rest = Math.floor(rest / 10)) digits++;
  return digits;
}

/** Writes the digits of a number that end before `end`. */
function writeNumber(memory: Buffer, end: number, number: number): void {
  let rest = number;
  let at = end;
  do {
    const tens = Math.floor(rest / 10);
    memory[--at] = ZERO + rest - 10 * tens;
    rest = tens;
  } while (rest > 0);
}
