// The icons: for a model step, for a tool by its card or executor, for an event by its type.
import type { InspectedEvent } from "@farhand/protocol";
import {
  Camera, Check, CircleAlert, CircleSlash, CircleX, ClipboardCopy, ClipboardList, ExternalLink, Hand, ListChecks, type LucideIcon, MapPin, MessageSquareText,
  Palette, Paperclip, Pause, Play, Plug, Server, ShieldCheck, Square, TextCursorInput, Zap,
} from "lucide-react";

const OF_CARD: Readonly<Record<string, LucideIcon>> = {
  photo: Camera,
  location: MapPin,
  open_page: ExternalLink,
  confirm: ShieldCheck,
  text: TextCursorInput,
  select: ListChecks,
  file: Paperclip,
  clipboard: ClipboardCopy,
  color: Palette,
  form: ClipboardList,
};

export function iconOfTool({ card, executor }: { card?: string | null | undefined; executor?: string | undefined }): LucideIcon {
  const known = card === null || card === undefined ? undefined : OF_CARD[card];
  return known ?? (executor === "client" ? Plug : executor === "frontend" ? Hand : Server);
}

const OF_EVENT: Readonly<Record<string, LucideIcon>> = {
  "run-started": Play,
  "run-parked": Pause,
  "run-resumed": Play,
  "run-finished": Square,
  "run-failed": CircleAlert,
  "step-started": Zap,
  "step-finished": Zap,
  "step-discarded": CircleSlash,
  "model-delayed": CircleAlert,
  "text-added": MessageSquareText,
  "reasoning-added": MessageSquareText,
  "call-rejected": CircleAlert,
  "call-settled": Check,
  "call-released": CircleAlert,
  "approval-answered": ShieldCheck,
  "client-registered": Plug,
  "client-unregistered": Plug,
};

export function iconOfEvent(event: InspectedEvent): LucideIcon {
  return isSad(event) ? CircleX : (OF_EVENT[event.type] ?? Hand);
}

/** The icon for a call that did not end well. */
function isSad({ type, data }: InspectedEvent): boolean {
  const outcome = data["outcome"] as { readonly kind?: string } | undefined;
  return (type === "call-settled" && outcome?.kind !== "success") || (type === "approval-answered" && data["approved"] === false);
}

const TONES: Readonly<Record<string, string>> = {
  "run-failed": "text-red",
  "call-rejected": "text-red",
  "call-released": "text-amber",
  "model-delayed": "text-amber",
  "run-parked": "text-amber",
  "call-settled": "text-green",
  "call-opened": "text-tint-text",
  "call-taken": "text-tint-text",
};

export function toneOfEvent(event: InspectedEvent): string {
  return isSad(event) ? "text-red" : (TONES[event.type] ?? "text-muted");
}
