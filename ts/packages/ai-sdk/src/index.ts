export {
  type AnswerableMessage,
  type AnswerablePart,
  type AnsweredOptions,
  sendWhenAnswered,
} from "./auto-send.ts";
