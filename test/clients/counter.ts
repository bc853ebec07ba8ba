// The contract of the rounds, by hand: called with data it adds one to its count and emits a log
// with the count as its topic; called without it returns the count.
import { creationOf } from "../fakes/real-nodes.ts";

const RETURN_COUNT = "36600f57" + "600054600052" + "60206000f3";
const ADD_ONE = "5b" + "600054600101" + "80600055" + "60006000a1" + "00";

/** Creates it. */
export const COUNTER_BYTECODE = creationOf(RETURN_COUNT + ADD_ONE);
