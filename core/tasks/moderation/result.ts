import { type ModerationCategory, type ModerationResponse, moderationCategories } from '../../schemas/moderation.ts'

export type ModerationResult = ModerationResponse['results'][number]

/** Categories for which OpenAI's API judges images too. */
const seen: ReadonlySet<ModerationCategory> = new Set([
  'self-harm',
  'self-harm/intent',
  'self-harm/instructions',
  'sexual',
  'violence',
  'violence/graphic',
])

/** From this score on, content is of a category. */
const threshold = 0.5

const each = <Value>(value: (category: ModerationCategory) => Value): Record<ModerationCategory, Value> =>
  Object.fromEntries(moderationCategories.map(category => [category, value(category)])) as Record<
    ModerationCategory,
    Value
  >

/** Returns a result with these scores; categories without one have 0. */
export function moderationResult(
  scores: Partial<Record<ModerationCategory, number>>,
  kinds: readonly ('text' | 'image')[],
): ModerationResult {
  const score = (category: ModerationCategory) => Math.min(1, Math.max(0, scores[category] ?? 0))
  return {
    flagged: moderationCategories.some(category => score(category) >= threshold),
    categories: each(category => score(category) >= threshold),
    category_scores: each(score),
    category_applied_input_types: each(category => kinds.filter(kind => kind === 'text' || seen.has(category))),
  }
}
