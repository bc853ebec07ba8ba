// Loaded before the service where it is to run without a rule.
import { RULES, switchOff } from "../../sim/rules-off.ts";

const rule = RULES[Number(process.env["WITHOUT_RULE"])];
if (rule !== undefined) switchOff(rule);
