// What a newcomer may ask, as the agent says it, and pictures for it.
import { Camera, ClipboardCopy, CloudSun, ExternalLink, FileUp, HelpCircle, Lightbulb, List, type LucideIcon, MapPin, MessageSquare, Palette, ShieldCheck, Type, Unplug } from "lucide-react";

export interface Starter {
  readonly title: string;
  readonly prompt: string;
  readonly about?: string;
}

const SIGNS: readonly (readonly [RegExp, LucideIcon])[] = [
  [/\bweather\b/i, CloudSun],
  [/\b(photo|camera|picture|scan|receipt)/i, Camera],
  [/\blamp\b/i, Lightbulb],
  [/\b(where am i|location|place|map)\b/i, MapPin],
  [/\b(delete|remove|send|approve)\b/i, ShieldCheck],
  [/\b(copy|clipboard)\b/i, ClipboardCopy],
  [/\bhttps?:|\bopen\b/i, ExternalLink],
  [/\b(files?|upload|rename|document)\b/i, FileUp],
  [/\bcolou?r\b/i, Palette],
  [/\b(yes or no|confirm)\b/i, HelpCircle],
  [/\b(choose|lunch)\b/i, List],
  [/\bname\b/i, Type],
  [/\b(plug|story)\b/i, Unplug],
];

/** By a word that says what it is about. */
export function iconFor(text: string): LucideIcon {
  return SIGNS.find(([words]) => words.test(text))?.[1] ?? MessageSquare;
}
