// The packets of the bus between the supervisor and its workers, and their validation. Knows no
// topic.
import { isRecord } from "../../core/fields.ts";
import type { BusReply, WorkerId } from "../../core/workers/bus.ts";

/** The reason of a failed reply. */
export type ReplyFailure = Extract<BusReply<unknown>, { readonly ok: false }>["reason"];

/** One packet of the bus. */
export type Packet =
  | {
      readonly kind: "hint";
      readonly from: WorkerId;
      readonly topic: string;
      readonly body: unknown;
    }
  | {
      readonly kind: "question";
      readonly id: number;
      readonly from: WorkerId;
      readonly to: WorkerId;
      readonly topic: string;
      readonly body: unknown;
    }
  | {
      readonly kind: "answer";
      readonly id: number;
      readonly from: WorkerId;
      readonly to: WorkerId;
      readonly reply: BusReply<unknown>;
    }
  | {
      readonly kind: "workers";
      /** Those that serve. */
      readonly ids: readonly WorkerId[];
      /** Those that live and do not answer. */
      readonly silent: readonly WorkerId[];
    };

const FAILURES: readonly unknown[] = [
  "timeout",
  "gone",
  "busy",
  "refused",
] satisfies ReplyFailure[];
const MAX_WORKERS = 64;

/** Parses a packet; null = invalid. */
export function parsePacket(value: unknown): Packet | null {
  if (!isRecord(value)) return null;
  const { kind, id, from, to, topic, body } = value;
  if (kind === "workers") {
    const [ids, silent] = [idsIn(value["ids"]), idsIn(value["silent"])];
    return ids === null || silent === null ? null : { kind, ids, silent };
  }
  if (typeof from !== "string") return null;
  if (kind === "hint") return typeof topic === "string" ? { kind, from, topic, body } : null;
  if (typeof to !== "string" || !Number.isSafeInteger(id)) return null;
  const addressed = { id: Number(id), from, to };
  if (kind === "question")
    return typeof topic === "string" ? { kind, ...addressed, topic, body } : null;
  const reply = kind === "answer" ? replyOf(value["reply"]) : null;
  return reply === null ? null : { kind: "answer", ...addressed, reply };
}

function idsIn(ids: unknown): readonly WorkerId[] | null {
  if (!Array.isArray(ids) || ids.length > MAX_WORKERS) return null;
  const names = ids.filter((id) => typeof id === "string");
  return names.length === ids.length ? names : null;
}

function replyOf(value: unknown): BusReply<unknown> | null {
  if (!isRecord(value)) return null;
  if (value["ok"] === true) return { ok: true, value: value["value"] };
  const failure = FAILURES.find((reason) => reason === value["reason"]);
  return failure === undefined ? null : { ok: false, reason: failure as ReplyFailure };
}
