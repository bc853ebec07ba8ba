// `npm run conformance`: writes `CONFORMANCE.md`, and says which answers were changed. Exit code 1
// if any was.
import { writeFileSync } from "node:fs";
import { conformanceDocument, DOCUMENT } from "./document.ts";
import { runExchanges } from "./exchange-run.ts";
import { readExchanges, servedOf } from "./exchanges.ts";

const exchanges = readExchanges();
const result = await runExchanges(servedOf(exchanges));
for (const { way, exchange, received } of result.differences)
  process.stdout.write(`${way}: ${exchange.file}: ${received.slice(0, 200)}\n`);
writeFileSync(DOCUMENT, await conformanceDocument(exchanges, result));
process.stdout.write("wrote CONFORMANCE.md\n");
process.exitCode = result.differences.length === 0 ? 0 : 1;
