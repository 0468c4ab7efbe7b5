// The suggested prompts of the agent, with an icon for each.
import { Camera, ClipboardCopy, CloudSun, ExternalLink, FileUp, HelpCircle, Lightbulb, List, type LucideIcon, MapPin, MessageSquare, Palette, ShieldCheck, Thermometer, Timer, Type, Unplug } from "lucide-react";

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
  [/\b(thermometer|warm)\b/i, Thermometer],
  [/\bseconds\b/i, Timer],
];

/** The icon for the first keyword found, in the title first. */
export function iconFor(...texts: readonly string[]): LucideIcon {
  const found = texts.flatMap((text) => SIGNS.filter(([words]) => words.test(text)));
  return found[0]?.[1] ?? MessageSquare;
}
