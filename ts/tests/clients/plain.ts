// The chat class of `ai` itself, without a framework, over HTTP and over AI SDK 7's WebSocket transport.
import * as ai7 from "ai";
import * as ai5 from "ai5";
import * as ai6 from "ai6";
import * as ai603 from "ai603";
import { linesOf, type Message } from "../message.ts";
import { socketOn, Wire } from "../wire.ts";
import {
  bodyOf,
  type Chat,
  type Client,
  type Hands,
  httpOptions,
  type Opening,
  Page,
  type ToolCall,
} from "./client.ts";
import { LiveSocketTransport } from "./live.ts";
import { type StockHelpers, whenToSend } from "./when-to-send.ts";

export const http5: Client = {
  name: "ai 5",
  transport: "http",
  open: (opening) =>
    openPage(opening, (wire, callbacks) => {
      const transport = new ai5.DefaultChatTransport(httpOptions(opening, wire));
      return new Chat5({ ...callbacks, ...whenToSend(ai5, opening), transport });
    }),
};

export const http603: Client = {
  name: "ai 6.0.3",
  transport: "http",
  resumesFromEmptyOnly: true,
  open: (opening) =>
    openPage(opening, (wire, callbacks) => {
      const transport = new ai603.DefaultChatTransport(httpOptions(opening, wire));
      return new Chat603({ ...callbacks, ...whenToSend(ai603, opening), transport });
    }),
};

export const http6: Client = {
  name: "ai 6",
  transport: "http",
  open: (opening) =>
    openPage(opening, (wire, callbacks) => {
      const transport = new ai6.DefaultChatTransport(httpOptions(opening, wire));
      return new Chat6({ ...callbacks, ...whenToSend(ai6, opening), transport });
    }),
};

export const http7: Client = {
  name: "ai 7",
  transport: "http",
  open: (opening) =>
    openPage(opening, (wire, callbacks) => {
      const transport = new ai7.DefaultChatTransport(httpOptions(opening, wire));
      return new Chat7({ ...callbacks, ...whenToSend(ai7, opening), transport });
    }),
};

export const socket7: Client = {
  name: "ai 7, WebSocket",
  transport: "socket",
  open: (opening) =>
    openPage(opening, (wire, callbacks) => {
      const url = `${opening.url}/api/chat/ws`;
      // `ws` types its events more closely than the transport asks for
      const webSocket = socketOn(wire) as unknown as SocketClass;
      const transport = new ai7.WebSocketChatTransport({ url, webSocket, body: bodyOf(opening) });
      return new Chat7({ ...callbacks, ...whenToSend(ai7, opening), transport });
    }),
};

/** The chat classes of these versions over the held WebSocket, with a transport written for the test. */
export const liveChats = [
  ["ai 6.0.3", (url: string, opening: Opening) => openLive(url, opening, Chat603, ai603)],
  ["ai 6", (url: string, opening: Opening) => openLive(url, opening, Chat6, ai6)],
  ["ai 7", (url: string, opening: Opening) => openLive(url, opening, Chat7, ai7)],
] as const;

type AnyChat = new (init: never) => unknown;

function openLive(url: string, opening: Opening, chatClass: AnyChat, stock: StockHelpers): LivePage {
  const transport = new LiveSocketTransport(url);
  const page = openPage(opening, (_wire, callbacks) => {
    const init = { ...callbacks, ...whenToSend(stock, opening), transport };
    return new chatClass(init as never);
  });
  return { page, transport };
}

export interface LivePage {
  readonly page: Page;
  readonly transport: LiveSocketTransport;
}

type SocketClass = NonNullable<ai7.WebSocketChatTransportInitOptions<ai7.UIMessage>["webSocket"]>;

interface Callbacks {
  readonly id: string;
  readonly onToolCall: (options: { toolCall: ToolCall }) => void;
  readonly messages: Message[];
}

function openPage(opening: Opening, chatOn: (wire: Wire, callbacks: Callbacks) => unknown): Page {
  const wire = new Wire();
  const onToolCall: Callbacks["onToolCall"] = ({ toolCall }) => {
    page.toolCalls.push(toolCall);
    opening.onToolCall?.(toolCall, page);
  };
  const messages = [...(opening.messages ?? [])];
  // the classes of the versions are alike, but their types are not: the tests use what all of them have
  const chat = chatOn(wire, { id: opening.chatId, onToolCall, messages }) as Chat;
  const page = new Page(opening.chatId, wire, handsOn(chat));
  if (opening.resume === true) {
    page.resume();
  }
  return page;
}

function handsOn(chat: Chat): Hands {
  return {
    chat: () => chat,
    see: () => linesOf(chat.messages),
    say: (text) => void chat.sendMessage({ text }),
    decide: (id, approved, reason) =>
      void chat.addToolApprovalResponse({ id, approved, ...(reason === undefined ? {} : { reason }) }),
    close: () => void chat.stop(),
  };
}

/** What a chat keeps, in memory. */
class Kept<M> {
  status: ai7.ChatStatus = "ready";
  error: Error | undefined = undefined;

  constructor(public messages: M[]) {}

  pushMessage = (message: M): void => {
    this.messages = [...this.messages, message];
  };

  popMessage = (): void => {
    this.messages = this.messages.slice(0, -1);
  };

  replaceMessage = (index: number, message: M): void => {
    this.messages = this.messages.with(index, this.snapshot(message));
  };

  snapshot = <T>(thing: T): T => structuredClone(thing);
}

type Init<T> = T & Callbacks;

class Chat7 extends ai7.AbstractChat<ai7.UIMessage> {
  constructor({ messages, ...init }: Init<{ transport: ai7.ChatTransport<ai7.UIMessage> }>) {
    super({ ...init, state: new Kept(messages as ai7.UIMessage[]) });
  }
}

class Chat6 extends ai6.AbstractChat<ai6.UIMessage> {
  constructor({ messages, ...init }: Init<{ transport: ai6.ChatTransport<ai6.UIMessage> }>) {
    super({ ...init, state: new Kept(messages as ai6.UIMessage[]) });
  }
}

class Chat603 extends ai603.AbstractChat<ai603.UIMessage> {
  constructor({ messages, ...init }: Init<{ transport: ai603.ChatTransport<ai603.UIMessage> }>) {
    super({ ...init, state: new Kept(messages as ai603.UIMessage[]) });
  }
}

class Chat5 extends ai5.AbstractChat<ai5.UIMessage> {
  constructor({ messages, ...init }: Init<{ transport: ai5.ChatTransport<ai5.UIMessage> }>) {
    super({ ...init, state: new Kept(messages as ai5.UIMessage[]) });
  }
}
