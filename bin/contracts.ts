// Writes the code of the local chains' contracts beside their sources. A test compares the
// committed files with it.
import { writeFileSync } from "node:fs";
import { CONTRACTS, compiled } from "../test/fakes/solidity.ts";

for (const contract of CONTRACTS) {
  writeFileSync(contract.file, compiled(contract));
  console.log(`wrote ${contract.file.pathname.split("/").at(-1)}`);
}
