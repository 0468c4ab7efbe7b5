export { type Call, type Course, inputOf, isOpen, type Message, type Part, reduce, SILENCE, type Talk } from "./call.ts";
export { Executor, type Handler, type HandlerContext, type HandlerMap, type OnUnknown } from "./executor.ts";
export { type Http, httpOf, type HttpOptions } from "./http.ts";
export { type Delivery, type Keep, type Letter, Outbox } from "./outbox.ts";
export { sseTransport } from "./sse.ts";
export { type Connection, type Decision, LiveThread, type ThreadOptions, type ThreadState } from "./thread.ts";
export { Cut, type Frame, type Frames, Refused, type Transport } from "./transport.ts";
export { unreachable } from "./unreachable.ts";
export { openable } from "./url.ts";
