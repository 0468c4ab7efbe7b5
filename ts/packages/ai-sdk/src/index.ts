export { type AnswerableMessage, type AnswerablePart, type AnsweredOptions, sendWhenAnswered } from "./auto-send.ts";
export { FarHands, type FarHandsOptions, type ToolCall } from "./hands.ts";
export { LiveTransport, type LiveOptions, Replay } from "./live.ts";
export { farhandTransport, type TransportOptions } from "./transport.ts";
