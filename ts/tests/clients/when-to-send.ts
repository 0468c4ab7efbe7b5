// `sendAutomaticallyWhen`, as pages set it.
import { type AnswerableMessage, sendWhenAnswered } from "../../packages/ai-sdk/src/index.ts";
import type { Opening } from "./client.ts";

type When = (options: { messages: never[] }) => boolean;

/** The helpers in the `ai` package of a version. */
export interface StockHelpers {
  readonly lastAssistantMessageIsCompleteWithToolCalls: When;
  /** Missing in version 5, which has no approvals. */
  readonly lastAssistantMessageIsCompleteWithApprovalResponses?: When;
}

export function whenToSend(stock: StockHelpers, opening: Opening): { sendAutomaticallyWhen?: When } {
  switch (opening.autoSend ?? "stock") {
    case "stock":
      return {
        sendAutomaticallyWhen: (options) =>
          stock.lastAssistantMessageIsCompleteWithToolCalls(options) ||
          stock.lastAssistantMessageIsCompleteWithApprovalResponses?.(options) === true,
      };
    case "joint": {
      const answered = sendWhenAnswered({ frontendTools: ["open_url", "take_photo"] });
      return {
        sendAutomaticallyWhen: ({ messages }: { messages: AnswerableMessage[] }) => answered({ messages }),
      };
    }
    case "never":
      return {};
  }
}
