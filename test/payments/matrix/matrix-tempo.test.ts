// The matrix of lost questions, lost writes and ended processes: the ways to pay on the
// Tempo chain.
import { testPoints } from "./points.ts";

testPoints("tempo");
