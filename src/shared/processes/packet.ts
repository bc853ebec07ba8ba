// The packets of the bus between the supervisor and its workers. Knows no topic.
import type { BusReply, WorkerId } from "../../core/workers/bus.ts";

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
