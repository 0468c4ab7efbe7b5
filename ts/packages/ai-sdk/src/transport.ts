// AI SDK's own HTTP transport, configured for farhand: the server has the history, so only the last message is sent.
import type { HttpOptions } from "@farhand/client";
import { type ChatTransport, DefaultChatTransport, type UIMessage } from "ai";

export interface TransportOptions {
  /** The address of the server; by default, the page's own. */
  readonly url?: string;
  readonly fetch?: typeof fetch;
  readonly headers?: HttpOptions["headers"];
  readonly credentials?: RequestCredentials;
  /**
   * `turn`: the response ends when the page has to answer, and the next request contains the answers. `hold`: the response stays open,
   * and answers are sent in separate requests (see `FarHands`).
   */
  readonly wait?: "turn" | "hold";
}

export function farhandTransport<Message extends UIMessage = UIMessage>({
  url = "",
  wait = "turn",
  headers = {},
  ...options
}: TransportOptions = {}): ChatTransport<Message> {
  return new DefaultChatTransport<Message>({
    ...options,
    headers,
    api: `${url.replace(/\/$/, "")}/api/chat`,
    prepareSendMessagesRequest: ({ id, messages, trigger, messageId, body }) => ({
      body: { ...body, id, trigger, messageId, messages: messages.slice(-1), wait },
    }),
  });
}
