import { z } from 'zod'
import {
  boolean,
  namedObject,
  nonEmptyString,
  nonEmptyText,
  nullish,
  number,
  object,
  objects,
  optionalObject,
  string,
} from './fields.ts'

/** The wire shape of moderations. Source: OpenAI's published API description (CreateModerationRequest, -Response). */
export const moderationCategories = [
  'harassment',
  'harassment/threatening',
  'hate',
  'hate/threatening',
  'illicit',
  'illicit/violent',
  'self-harm',
  'self-harm/intent',
  'self-harm/instructions',
  'sexual',
  'sexual/minors',
  'violence',
  'violence/graphic',
] as const
export type ModerationCategory = (typeof moderationCategories)[number]

const Part = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: nonEmptyString('The text.') }),
  z.object({
    type: z.literal('image_url'),
    image_url: object('The image.', {
      url: nonEmptyString('An http(s) URL, a `data:` URL, or the id of a file (`file-…`).'),
    }),
  }),
])
export type ModerationPart = z.output<typeof Part>

export const ModerationRequest = namedObject('ModerationRequest', 'Content to check for harm.', {
  model: nullish(
    z.string().max(256),
    "Id of a model that does `std/moderation`. When absent, or one of OpenAI's names such as `omni-moderation-latest`, the first such model.",
  ),
  input: z
    .union([nonEmptyText, z.array(nonEmptyText).min(1).max(64), z.array(Part).min(1).max(64)])
    .describe('A text, up to 64 texts with a result each, or parts of text and images with one result.'),
})
export type ModerationRequest = z.output<typeof ModerationRequest>

const each = <Value extends z.ZodType>(value: Value) => z.record(z.string(), value)

export const ModerationResponse = namedObject('ModerationResponse', 'Judgements of content.', {
  id: string('Id of the answer.'),
  model: string('Id of the model that judged.'),
  results: objects('One result for each text, or one for all parts.', {
    flagged: boolean('Whether the content is harmful.'),
    categories: each(z.boolean()).describe('Whether the content is of the category: a score of 0.5 or more.'),
    category_scores: each(z.number()).describe('How certain the model is, from 0 to 1.'),
    category_applied_input_types: each(z.array(z.enum(['text', 'image']))).describe(
      'Which kinds of input were judged for the category.',
    ),
    label: optionalObject('What a classifier answered, in its own words; absent if a chat model judged.', {
      name: string('The label.'),
      score: number('Its probability.'),
    }),
  }),
})
export type ModerationResponse = z.output<typeof ModerationResponse>
