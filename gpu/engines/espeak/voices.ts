import { nearest } from '../../../core/nearest.ts'

/**
 * Parses the table that `espeak-ng --voices` prints. The first voice of a language is its best one; `id` is the
 * code that `-v` takes, such as `en-us`. Pure.
 */
export function parseEspeakVoices(table: string) {
  const voices = new Map<string, { id: string; name: string; language: string }>()
  for (const line of table.split('\n').slice(1)) {
    // Priority, language, age and gender, name, file, other languages.
    const [, language, , name] = line.trim().split(/\s+/)
    if (language && name && !voices.has(language))
      voices.set(language, { id: language, name: name.replaceAll('_', ' '), language })
  }
  return [...voices.values()]
}

/** Parses the names of variants in the table that `espeak-ng --voices=variant` prints: `!v/f3` is `f3`. Pure. */
export const variantsIn = (table: string): string[] => [
  ...new Set([...table.matchAll(/\s!v\/([A-Za-z0-9_-]+)/g)].map(match => match[1]!)),
]

/** Names that clients of OpenAI send without choosing. They get the default voice. */
const openAiNames = new Set('alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse'.split(' '))

/**
 * Returns the value for `-v`: a voice, also with a variant as in `en-us+f3`, else the voice of the language, else English.
 * Returns an error as a sentence for a voice that espeak-ng does not have. Pure.
 */
export function chooseVoice(
  { voice, language }: { voice?: string; language?: string },
  known: readonly { id: string }[],
  variants: readonly string[],
): { voice: string } | { fault: string } {
  const ids = known.map(({ id }) => id)
  const has = (id: string) => ids.includes(id)
  if (voice === undefined || openAiNames.has(voice)) {
    const fitting = [language?.toLowerCase(), language?.split('-')[0]?.toLowerCase(), 'en-us', 'en'].find(
      id => id !== undefined && has(id),
    )
    return { voice: fitting ?? ids[0] ?? 'en' }
  }
  const [base = '', variant, ...rest] = voice.split('+')
  if (has(base) && rest.length === 0 && (variant === undefined || variants.includes(variant))) return { voice }
  const meant = nearest(voice.slice(0, 64), ids)
  const hint = meant === undefined ? '' : ` Did you mean '${meant}'?`
  return {
    fault: `'voice': espeak-ng has no voice '${voice.slice(0, 64)}'.${hint} Its voices are languages such as en-us, de or fr, also with a variant such as en-us+f3.`,
  }
}
