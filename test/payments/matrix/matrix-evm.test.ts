// The matrix of lost questions, lost writes and ended processes: the ways to pay on the
// EVM chain.
import { testPoints } from "./points.ts";

testPoints("evm");
