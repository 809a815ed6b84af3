import { z } from 'zod'
import {
  anything,
  boolean,
  integer,
  namedObject,
  nullableString,
  object,
  oneOf,
  optional,
  optionalBoolean,
  optionalOneOf,
  optionalStringUpTo,
  strictObject,
} from './fields.ts'
import { schemaFaults } from './json-schema.ts'

/** The longest wait, seconds: a year. */
export const maxWaitSeconds = 31_536_000
/** How long a wait for a person or an event lasts unless it says otherwise, seconds: 90 days. */
export const defaultWaitSeconds = 7_776_000
/** The most bytes of the JSON of an event. */
export const maxEventBytes = 262_144
/** The most characters of a comment, and of the JSON of an answer. */
export const maxCommentLength = 4_000
const maxAnswerLength = 65_536

const seconds = (description: string) => z.number().min(1).max(maxWaitSeconds).optional().describe(description)

const fieldTypes = ['string', 'number', 'integer', 'boolean'] as const
const scalar = () => z.union([z.string().max(10_000), z.number(), z.boolean()])

/** One field of a form, a JSON Schema of a text, a number or a yes or no. */
const FormField = strictObject('FormField', 'One field of a form: a JSON Schema of a text, a number or a boolean.', {
  type: optionalOneOf('Type of the value. Default: `string`.', fieldTypes),
  title: optionalStringUpTo(256, 'What the page calls the field. Default: its name.'),
  description: optionalStringUpTo(2_000, 'Help below the field.'),
  enum: optional(
    z
      .array(z.union([z.string().max(1_000), z.number()]))
      .min(1)
      .max(200),
    'The only allowed values.',
  ),
  default: optional(scalar(), 'The value that the page shows at first.'),
  minimum: optional(z.number(), 'Smallest number.'),
  maximum: optional(z.number(), 'Largest number.'),
  minLength: optional(z.int().min(0), 'Fewest characters.'),
  maxLength: optional(z.int().min(0), 'Most characters.'),
  format: optionalStringUpTo(32, '`multiline`: the page has room for several lines. Others are ignored.'),
})
export type FormField = z.output<typeof FormField>

export const Form = strictObject(
  'Form',
  'A form: a JSON Schema of an object whose members are texts, numbers or booleans.',
  {
    type: optional(z.literal('object'), 'Always `object`.'),
    properties: z
      .record(z.string().min(1).max(64), FormField)
      .refine(fields => Object.keys(fields).length <= 50, 'a form has at most 50 fields.')
      .describe('The fields by name, in the order of the page.'),
    required: optional(z.array(z.string()).max(50), 'Names of the fields that must be filled in.'),
  },
).superRefine(({ properties, required = [] }, context) => {
  for (const [at, name] of required.entries())
    if (!Object.hasOwn(properties, name))
      context.addIssue({ code: 'custom', path: ['required', at], message: `the form has no field '${name}'.` })
})
export type Form = z.output<typeof Form>

const noPatterns = (): never => {
  throw new Error('A form has no patterns.')
}

/** What is wrong with an answer to a form, each as the rest of a sentence about `value`; empty if it fits. */
function answerFaults({ properties, required = [] }: Form, answer: unknown): string[] {
  if (JSON.stringify(answer ?? null).length > maxAnswerLength)
    return [`value must have at most ${maxAnswerLength} characters of JSON`]
  const fields = Object.entries(properties).map(([name, { type = 'string', ...field }]) => [
    name,
    field.enum ? { enum: field.enum } : { ...field, type },
  ])
  const schema = {
    type: 'object',
    properties: Object.fromEntries(fields) as object,
    required,
    additionalProperties: false,
  }
  return schemaFaults(schema, answer, noPatterns)
}

const decision = () => ({
  approved: boolean('Whether it is approved.'),
  answer: anything('The values of the form by name; only with a form, and needed if it is approved.').optional(),
  comment: optionalStringUpTo(maxCommentLength, 'Why, in words.'),
})
export const Decision = strictObject('ApprovalDecision', 'A decision.', decision())
export type Decision = z.output<typeof Decision>

/** What is wrong with a decision, as a sentence and the place; undefined if nothing is. */
export function decisionFault(
  { form }: { form?: Form | undefined },
  { approved, answer }: Decision,
): { path: string[]; message: string } | undefined {
  if (answer === undefined || answer === null)
    return approved && form && (form.required ?? []).length > 0
      ? { path: ['answer'], message: `the form needs ${form.required!.map(name => `'${name}'`).join(', ')}.` }
      : undefined
  if (!form) return { path: ['answer'], message: 'nothing but a decision is asked: there is no form.' }
  const [fault] = answerFaults(form, answer)
  return fault === undefined ? undefined : { path: ['answer'], message: `the answer does not fit the form: ${fault}.` }
}

export const ApprovalRequest = namedObject('ApprovalRequest', 'What a person is asked, and for how long.', {
  title: z.string().min(1).max(256).describe('What is asked, in one line.'),
  text: optionalStringUpTo(65_536, 'What the person needs to know to decide. Shown as it is, with its line breaks.'),
  images: optional(z.array(z.string()).max(16), 'Images to show: references to results, ids of files or addresses.'),
  form: Form.optional(),
  approvers: optional(
    z.array(z.string().min(1).max(320)).min(1).max(100),
    'Who may answer: names of tokens, or e-mail addresses of users. Default: every token with the scope `user:write`.',
  ),
  link: optionalBoolean(
    'Whether whoever has the link of the page may answer without a token. Default: true without `approvers`, else false.',
  ),
  reminder: seconds('Seconds until the event `workflow_execution.node.reminder`. Default: no reminder.'),
  timeout: seconds('Seconds until the wait ends without an answer, a year at most. Default: 90 days.'),
  default: optional(Decision, 'The decision that counts at the timeout. Default: the node fails with `timeout`.'),
}).superRefine(({ form, timeout, default: given }, context) => {
  const fault = given && decisionFault({ form }, given)
  if (fault) context.addIssue({ code: 'custom', ...fault, path: ['default', ...fault.path] })
  if (given && timeout === undefined)
    context.addIssue({ code: 'custom', path: ['default'], message: "'default' needs a 'timeout'." })
})
export type ApprovalRequest = z.output<typeof ApprovalRequest>

/** Who has answered. */
const answerers = ['user', 'token', 'link', 'timeout'] as const
export const ApprovalResult = namedObject('ApprovalResult', 'A decision.', {
  approved: boolean('Whether it was approved.'),
  answer: anything('The values of the form by name; null without a form.'),
  comment: nullableString('Why, in words; null without a comment.'),
  by: object('Who has answered.', {
    type: oneOf(
      '`user` and `token`: by the API. `link`: on the page. `timeout`: nobody, the default counts.',
      answerers,
    ),
    name: nullableString('E-mail address of the user, or name of the token; null for others.'),
  }),
  at: integer('Unix seconds of the answer.'),
})
export type ApprovalResult = z.output<typeof ApprovalResult>

export const EventRequest = namedObject('EventRequest', 'Which event to wait for, and for how long.', {
  title: optionalStringUpTo(256, 'What is waited for, for people.'),
  signed: optionalBoolean(
    'Whether only events count that are signed with the webhook secret of the organization. Default: false.',
  ),
  timeout: seconds('Seconds until the wait ends without an event, a year at most. Default: 90 days.'),
  default: anything('The body that counts at the timeout. Default: the node fails with `timeout`.').optional(),
}).superRefine(({ timeout, default: given }, context) => {
  if (given !== undefined && timeout === undefined)
    context.addIssue({ code: 'custom', path: ['default'], message: "'default' needs a 'timeout'." })
})
export type EventRequest = z.output<typeof EventRequest>

export const EventResult = namedObject('EventResult', 'An event.', {
  body: anything('The JSON that was sent.'),
  at: integer('Unix seconds at which it arrived.'),
  timed_out: boolean('Whether no event arrived in time, so that the body is the default.'),
})
export type EventResult = z.output<typeof EventResult>

export const UntilRequest = namedObject('UntilRequest', 'When to go on.', {
  at: optional(
    z.union([z.int().min(0).max(9_999_999_999), z.iso.datetime({ offset: true })]),
    'Time to go on, in Unix seconds or as `2027-01-31T08:00:00Z`, at most a year ahead. A time that has passed does not wait.',
  ),
  seconds: optional(z.number().min(0).max(maxWaitSeconds), 'Seconds to wait.'),
}).superRefine(({ at, seconds: wait }, context) => {
  if ((at === undefined) === (wait === undefined))
    context.addIssue({ code: 'custom', path: ['at'], message: "send either 'at' or 'seconds'." })
})
export type UntilRequest = z.output<typeof UntilRequest>

export const UntilResult = namedObject('UntilResult', 'The end of a wait.', {
  at: integer('Unix seconds of the end.'),
})
export type UntilResult = z.output<typeof UntilResult>
