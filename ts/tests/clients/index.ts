// All clients that the chat stream supports.
import type { Client } from "./client.ts";
import { http5, http6, http603, http7, socket7 } from "./plain.ts";
import { react6, react7 } from "./use-chat.tsx";

export const clients: readonly Client[] = [http603, http6, http7, socket7, react6, react7];

/** Including those without approvals. */
export const allClients: readonly Client[] = [http5, ...clients];

export { http6, http603, http7, react6, react7, socket7 };
export { type AutoSend, type Client, type Opening, Page, type ToolCall } from "./client.ts";
