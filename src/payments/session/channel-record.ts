// Channels in the store: reads and writes their rows, and seals their vouchers. Knows no chain, and
// decides nothing.
import { sql } from "kysely";
import { z } from "zod";
import type { Sealer } from "../../secrets/sealer.ts";
import type { Tx } from "../../shared/ledger/ledger.ts";
import { isEmbedded } from "../../shared/ledger/ledger.ts";
import type { SealedColumn } from "../../shared/nodes/resealing.ts";
import type { Store } from "../../shared/store/store.ts";
import type { SessionChannelTable } from "../../shared/store/tables-payments.ts";
import { SEALED_TRANSACTIONS } from "./chain/transaction-record.ts";
import type { ChannelMoney, Voucher } from "./channel.ts";
import { type Descriptor, descriptorText, type Hex, parseDescriptor } from "./descriptor.ts";

/** A channel as it stands in the store, with its vouchers and its descriptor opened. */
export type SessionChannel = Omit<SessionChannelTable, "descriptor" | "vouchers"> &
  ChannelMoney & { readonly descriptor: Descriptor };

/** A change of a channel's row. */
export type ChannelPatch = Partial<Omit<SessionChannel, "id" | "descriptor">>;

/** Channels that are due for a check. */
export interface DueChannels {
  readonly channels: readonly SessionChannel[];
  /** Ids of channels that were sealed with a secret that is not configured. */
  readonly unreadable: readonly string[];
}

/** Due channels that are taken at one time. */
export const TAKEN_AT_ONCE = 32;
/** A channel taken by an instance that then ended is due again after this time. */
export const TAKEN_MS = 60_000n;

/** Channels in a store. */
export class ChannelRecord {
  readonly #sealer: Sealer;

  /** `sealer` keeps their vouchers. */
  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** Null = there is none. */
  async read(db: Pick<Store["db"], "selectFrom">, id: Hex): Promise<SessionChannel | null> {
    const query = db.selectFrom("session_channel").selectAll().where("id", "=", id);
    return this.#opened(await query.executeTakeFirst());
  }

  /** As `read`, with the sum that calls under way hold. */
  async readHeld(
    { db }: Pick<Store, "db">,
    id: Hex,
  ): Promise<{ readonly record: SessionChannel; readonly heldUnits: bigint } | null> {
    const row = await db
      .selectFrom("session_channel")
      .selectAll()
      .select((eb) =>
        eb
          .selectFrom("session_hold")
          .select(({ fn }) => fn.sum<bigint | string>("units").as("sum"))
          .whereRef("session_hold.channel_id", "=", "session_channel.id")
          .as("held"),
      )
      .where("id", "=", id)
      .executeTakeFirst();
    const record = this.#opened(row);
    return record === null ? null : { record, heldUnits: BigInt(row?.held ?? 0n) };
  }

  /** As `read`, and locks the channel until the transaction ends. */
  async lock(tx: Tx, id: Hex): Promise<SessionChannel | null> {
    const [channel] = await this.lockAll(tx, [id]);
    return channel ?? null;
  }

  /** Locks channels in the order of all processes, so that no two wait for each other. */
  async lockAll(tx: Tx, ids: readonly Hex[]): Promise<readonly SessionChannel[]> {
    const query = tx.selectFrom("session_channel").selectAll().where("id", "in", ids).orderBy("id");
    const rows = await (isEmbedded(tx) ? query : query.forUpdate()).execute();
    return rows.map((row) => parseChannel(row, this.#sealer));
  }

  /** False = there is one with this id. */
  async insert(tx: Tx, channel: SessionChannel): Promise<boolean> {
    const inserted = await tx
      .insertInto("session_channel")
      .values({
        ...channel,
        descriptor: descriptorText(channel.descriptor),
        vouchers: sealed(channel.id, channel.vouchers, this.#sealer),
      })
      .onConflict((conflict) => conflict.doNothing())
      .returning("id")
      .execute();
    return inserted.length > 0;
  }

  async write(tx: Tx, id: Hex, { vouchers, ...change }: ChannelPatch): Promise<void> {
    await tx
      .updateTable("session_channel")
      .set({
        ...change,
        ...(vouchers === undefined ? {} : { vouchers: sealed(id, vouchers, this.#sealer) }),
      })
      .where("id", "=", id)
      .execute();
  }

  /** Writes a change of a locked channel; returns the channel after it. */
  async change(tx: Tx, channel: SessionChannel, patch: ChannelPatch): Promise<SessionChannel> {
    await this.write(tx, channel.id, patch);
    return { ...channel, ...patch };
  }

  /** The statement that writes what calls have changed of channels; at least one. */
  spending(channels: readonly SessionChannel[]) {
    const rows = channels.map(
      ({ id, spent_units, vouchers, calls, owed_since, look_at }) =>
        sql`(cast(${id} as text), cast(${spent_units} as bigint),
          cast(${sealed(id, vouchers, this.#sealer)} as text), cast(${calls} as bigint),
          cast(${owed_since} as bigint), cast(${look_at} as bigint))`,
    );
    return sql`update session_channel set spent_units = change.column2,
      vouchers = change.column3, calls = change.column4, owed_since = change.column5,
      look_at = change.column6 from (values ${sql.join(rows)}) as change where id = change.column1`;
  }

  /**
   * Takes some due channels and makes them due again after `TAKEN_MS`. Until then no other instance
   * takes them. Unreadable channels are postponed as well, and returned by their ids.
   */
  async takeDue(tx: Tx, chainId: number, now: bigint): Promise<DueChannels> {
    const query = tx
      .selectFrom("session_channel")
      .selectAll()
      .where("ended_at", "is", null)
      .where("chain_id", "=", BigInt(chainId))
      .where("look_at", "<=", now)
      .orderBy("look_at")
      .limit(TAKEN_AT_ONCE);
    const rows = await (isEmbedded(tx) ? query : query.forUpdate().skipLocked()).execute();
    if (rows.length === 0) return { channels: [], unreadable: [] };
    await tx
      .updateTable("session_channel")
      .set({ look_at: now + TAKEN_MS })
      .where(
        "id",
        "in",
        rows.map((row) => row.id),
      )
      .execute();
    const read = rows.map((row) => [row.id, readable(row, this.#sealer)] as const);
    return {
      channels: read.flatMap(([, channel]) => channel ?? []),
      unreadable: read.flatMap(([id, channel]) => (channel === null ? [id] : [])),
    };
  }

  #opened(row: SessionChannelTable | undefined): SessionChannel | null {
    return row === undefined ? null : parseChannel(row, this.#sealer);
  }
}

function readable(row: SessionChannelTable, sealer: Sealer): SessionChannel | null {
  try {
    return parseChannel(row, sealer);
  } catch {
    return null;
  }
}

/** A voucher is sealed for its channel: elsewhere it does not open. */
function contextOf(id = ""): string {
  return `session channel ${id}`;
}

function sealed(id: Hex, vouchers: readonly Voucher[], sealer: Sealer): string {
  return sealer.seal(
    JSON.stringify(vouchers.map(({ units, signature }) => [String(units), signature])),
    contextOf(id),
  );
}

const vouchersShape = z.array(z.tuple([z.string().regex(/^\d+$/).transform(BigInt), z.string()]));

function parseChannel(row: SessionChannelTable, sealer: Sealer): SessionChannel {
  const descriptor = parseDescriptor(row.descriptor);
  const text = sealer.open(row.vouchers, contextOf(row.id));
  if (descriptor === null || text === null) {
    throw new Error(
      `channel ${row.id} cannot be read: its vouchers were sealed with another secret. Start ` +
        "svc with the secret that it was written with",
    );
  }
  const vouchers = vouchersShape.parse(JSON.parse(text));
  return {
    ...row,
    descriptor,
    vouchers: vouchers.map(([units, signature]) => ({ units, signature })),
  };
}

/** The sealed columns of channels. */
export const SEALED_CHANNELS: readonly SealedColumn[] = [
  {
    table: "session_channel",
    column: "vouchers",
    key: ["id"],
    contextOf,
    needed: sql`ended_at is null`,
  },
  SEALED_TRANSACTIONS,
];
