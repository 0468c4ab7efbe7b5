export { type AwaitingEvent, readTag } from "./tags.ts";
export { type AwaitingOptions, AwaitingThread } from "./thread.ts";
