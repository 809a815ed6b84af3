import type { ModerationCategory } from '../../schemas/moderation.ts'
import { engineFault } from '../protocols/answer.ts'
import { type ModerationResult, moderationResult } from './result.ts'

/** Labels of common classifiers for harmless content, in lower case with hyphens. */
const harmless = new Set(
  'safe ok okay neutral normal clean benign sfw none other label-0 0 false no not-toxic non-toxic nontoxic not-hate non-hate nothate not-offensive non-offensive non-harmful not-nsfw'.split(
    ' ',
  ),
)

/** Labels of common classifiers, each with its category. */
const categories: Readonly<Record<string, ModerationCategory>> = {
  toxic: 'harassment',
  toxicity: 'harassment',
  'severe-toxic': 'harassment',
  'severe-toxicity': 'harassment',
  insult: 'harassment',
  offensive: 'harassment',
  abuse: 'harassment',
  bullying: 'harassment',
  threat: 'harassment/threatening',
  hate: 'hate',
  'hate-speech': 'hate',
  hateful: 'hate',
  'identity-hate': 'hate',
  'identity-attack': 'hate',
  obscene: 'sexual',
  'sexual-explicit': 'sexual',
  sexual: 'sexual',
  nsfw: 'sexual',
  porn: 'sexual',
  's-m': 'sexual/minors',
  s3: 'sexual/minors',
  h: 'hate',
  hr: 'harassment',
  h2: 'hate/threatening',
  sh: 'self-harm',
  's-h': 'self-harm',
  'self-harm': 'self-harm',
  selfharm: 'self-harm',
  suicide: 'self-harm',
  s: 'sexual',
  v: 'violence',
  violence: 'violence',
  violent: 'violence',
  v2: 'violence/graphic',
  gore: 'violence/graphic',
  illegal: 'illicit',
  crime: 'illicit',
  drugs: 'illicit',
  weapons: 'illicit/violent',
}

/**
 * Returns the result for one label of a classifier. A label that stands for no category flags the content without one;
 * the caller finds it in `label`. Throws Failure `worker_error` for an answer without a label.
 */
export function judgementOfLabel(value: unknown, kinds: readonly ('text' | 'image')[]): ModerationResult {
  const { label, probs } = (value ?? {}) as { label?: unknown; probs?: unknown }
  const numbers = Array.isArray(probs) ? probs.filter(one => typeof one === 'number' && Number.isFinite(one)) : []
  if (typeof label !== 'string' || numbers.length === 0) throw engineFault('without a label and its probability')
  const score: number = Math.max(...(numbers as number[]))
  const name = label
    .trim()
    .toLowerCase()
    .replaceAll(/[\s_]+/g, '-')
  const isHarmless = harmless.has(name)
  const category = isHarmless ? undefined : (categories[name] ?? categories[name.replace(/^.*[/:]/, '')])
  const result = moderationResult(category ? { [category]: score } : {}, kinds)
  return {
    ...result,
    flagged: result.flagged || (!isHarmless && category === undefined),
    label: { name: label, score },
  }
}
