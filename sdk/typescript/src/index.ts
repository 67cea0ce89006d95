export { call, type CallOptions, state, type StateOptions } from "./call.js";
export { effect, type EffectOptions, type Errors, type Foreseen, resolve } from "./effect.js";
export {
  type Answer,
  Cancelled,
  Drift,
  Held,
  InDoubt,
  InFlight,
  LedgerUnavailable,
  Lookalike,
  Refused,
  type Retry,
  SemelError,
  UnstorableReply,
} from "./errors.js";
export { type Guarded, once, type Once, type OnceOptions, type ProbeOptions } from "./once.js";
export { current, type Effect, run } from "./run.js";
export { close, type Configuration, configure } from "./transport.js";
