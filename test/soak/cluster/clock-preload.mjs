// Loaded before a node of the soak: shifts its wall clock by the milliseconds that stand in the
// file which SVC_TEST_CLOCK names. The monotonic clock stays as it is, as on a real machine.
import { readFileSync } from "node:fs";

const file = process.env.SVC_TEST_CLOCK;
const LOOK_MS = 50;

if (file !== undefined) {
  const RealDate = Date;
  const realNow = Date.now.bind(Date);
  let shiftMs = 0;
  const read = () => {
    try {
      shiftMs = Number(readFileSync(file, "utf8")) || 0;
    } catch {
      shiftMs = 0;
    }
  };
  read();
  setInterval(read, LOOK_MS).unref();
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [realNow() + shiftMs] : args, newTarget),
    apply: () => new RealDate(realNow() + shiftMs).toString(),
    get: (target, name) => (name === "now" ? () => realNow() + shiftMs : Reflect.get(target, name)),
  });
}
