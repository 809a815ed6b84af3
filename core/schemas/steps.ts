import { z } from 'zod'
import { patternFault } from '../pattern.ts'
import { valuePath } from '../value-path.ts'
import {
  anyObject,
  anything,
  array,
  count,
  namedObject,
  optionalBoolean,
  optionalOneOf,
  optionalStringUpTo,
  string,
} from './fields.ts'
import { schemaFault } from './json-schema.ts'

/** The longest text of a step, in characters. */
const maxStepText = 4 << 20

/** How a text can be split, with the usual size of a part. */
export const splitSizes = { tokens: 500, characters: 2_000, lines: 50, paragraphs: 5 } as const
export type SplitUnit = keyof typeof splitSizes
const splitUnits = Object.keys(splitSizes) as [SplitUnit, ...SplitUnit[]]

const maxChunks = 10_000

export const SplitRequest = namedObject('SplitRequest', 'A text to split into chunks.', {
  text: z.string().max(maxStepText).describe('The text.'),
  by: optionalOneOf(
    'Unit of `size` and `overlap`. `tokens` are estimated from the length of the text, so that most tokenizers make fewer of it; chunks end with a paragraph, a line or a sentence where possible. Default: `tokens`.',
    splitUnits,
  ),
  size: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe('The most units of a chunk. Default: 500 tokens, 2000 characters, 50 lines or 5 paragraphs.'),
  overlap: z
    .int()
    .min(0)
    .optional()
    .describe('How many units at the end of a chunk begin the next one too. Default: 0.'),
  max_chunks: z
    .int()
    .min(1)
    .max(maxChunks)
    .optional()
    .describe('The node fails if the text makes more chunks than this. Default: 1000.'),
}).refine(({ by = 'tokens', size = splitSizes[by], overlap = 0 }) => overlap < size, {
  path: ['overlap'],
  message: "'overlap' must be less than 'size'.",
})
export type SplitRequest = z.output<typeof SplitRequest>

export const SplitResult = namedObject('SplitResult', 'The chunks of a text.', {
  chunks: array('The chunks in order. Without empty ones.', z.string()),
  count: count('How many chunks there are.'),
})
export type SplitResult = z.output<typeof SplitResult>

/** The longest text between the items of a list, in characters. */
export const maxSeparatorLength = 1_000

export const TemplateRequest = namedObject('TemplateRequest', 'A text with references to parameters and results.', {
  template: z
    .union([z.string().max(maxStepText), z.array(z.unknown())])
    .describe('The text, with references such as `${nodes.a.result.text}`; or one reference to a list.'),
  separator: optionalStringUpTo(
    maxSeparatorLength,
    'Text between the items of a list that is written into the text. Default: a line break.',
  ),
})
export type TemplateRequest = z.output<typeof TemplateRequest>

export const TemplateResult = namedObject('TemplateResult', 'The text of a template.', {
  text: string('The text with the values in place of the references.'),
})
export type TemplateResult = z.output<typeof TemplateResult>

/** A regular expression of the caller. */
const pattern = (description: string) =>
  z
    .string()
    .superRefine((source, context) => {
      const fault = patternFault(source)
      if (fault !== undefined)
        context.addIssue({ code: 'custom', message: `the pattern is not a valid regular expression: ${fault}.` })
    })
    .describe(description)

export const ExtractRequest = namedObject('ExtractRequest', 'A text, and what to take out of it.', {
  text: z.string().max(maxStepText).describe('The text, such as the answer of a model.'),
  schema: z
    .union([z.record(z.string(), z.unknown()), z.boolean()])
    .superRefine((schema, context) => {
      const fault = schemaFault(schema)
      if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
    })
    .optional()
    .describe('JSON Schema that the JSON in the text must fit. Default: any JSON.'),
  pattern: pattern('Regular expression (RE2) to find instead of JSON.').optional(),
  all: optionalBoolean('Whether to return every match of the pattern as a list, instead of the first. Default: false.'),
}).superRefine(({ schema, pattern, all }, context) => {
  if (schema !== undefined && pattern !== undefined)
    context.addIssue({ code: 'custom', path: ['pattern'], message: "send either 'schema' or 'pattern'." })
  if (all !== undefined && pattern === undefined)
    context.addIssue({ code: 'custom', path: ['all'], message: "'all' needs a 'pattern'." })
})
export type ExtractRequest = z.output<typeof ExtractRequest>

export const ExtractResult = namedObject('ExtractResult', 'What was found in a text.', {
  value: anything(
    'The JSON; or the named groups of the match, its text if the pattern has none, or a list of these for `all`.',
  ),
})
export type ExtractResult = z.output<typeof ExtractResult>

/** A path in a value, in the syntax of references. */
const path = (description: string) =>
  z
    .string()
    .refine(text => valuePath(text) !== undefined, 'a path is written as `items[0].name` or `["a name"].x`.')
    .describe(description)

const testKinds = ['equals', 'in', 'contains', 'matches', 'less_than', 'greater_than', 'exists'] as const
const bound = (description: string) => z.union([z.number(), z.string()]).optional().describe(description)

/** The fields of a test of one value. */
const testFields = () => ({
  path: path('Path in the item. Default: the item itself. What is missing counts as null.').optional(),
  equals: z.unknown().optional().describe('The value is equal to this one, with the same type.'),
  in: z.array(z.unknown()).max(1_000).optional().describe('The value is equal to one of these.'),
  contains: z
    .unknown()
    .optional()
    .describe('The value is a text that contains this text, or a list that contains this value.'),
  matches: pattern('The value is a text in which this regular expression (RE2) matches.').optional(),
  less_than: bound('The value is a smaller number, or a text that comes before this one.'),
  greater_than: bound('The value is a greater number, or a text that comes after this one.'),
  exists: optionalBoolean('`true`: the value is there and not null. `false`: it is missing or null.'),
})

/** Reports a condition that does not have exactly one of these fields. */
const hasOne =
  (kinds: readonly string[]) =>
  (condition: object, context: z.core.$RefinementCtx): void => {
    if (kinds.filter(kind => (condition as Record<string, unknown>)[kind] !== undefined).length !== 1)
      context.addIssue({ code: 'custom', message: `a condition has one of ${kinds.join(', ')}.` })
  }

const SelectConditionSchema = z
  .strictObject({
    ...testFields(),
    not: z
      .strictObject(testFields())
      .superRefine(hasOne(testKinds))
      .optional()
      .describe('This does not hold: a `path` and one of the other tests.'),
  })
  .superRefine(hasOne([...testKinds, 'not']))
  .superRefine(({ path, not }, context) => {
    if (not !== undefined && path !== undefined)
      context.addIssue({ code: 'custom', path: ['path'], message: "'path' belongs into 'not'." })
  })
  .meta({ id: 'SelectCondition', description: 'A condition on an item of a list.' })
export type SelectCondition = z.output<typeof SelectConditionSchema>

const selections = ['path', 'filter', 'sort_by', 'slice', 'merge', 'pick', 'flatten', 'unique_by', 'count'] as const

const SelectionSchema = z
  .strictObject({
    path: path('Goes to a part of the value: `results[0].document`.').optional(),
    filter: SelectConditionSchema.optional().describe('Keeps the items of a list for which this holds.'),
    sort_by: path('Sorts a list by the value at this path of its items: numbers, texts, then others.').optional(),
    descending: optionalBoolean('Whether `sort_by` puts the largest first. Default: false.'),
    slice: z
      .array(z.int())
      .min(1)
      .max(2)
      .optional()
      .describe(
        'Keeps a part of a list: from this index, and up to before the second; negative ones count from the end.',
      ),
    merge: z
      .union([z.array(z.unknown()), z.record(z.string(), z.unknown())])
      .optional()
      .describe('Appends this list to a list, or adds these members to an object or to each object of a list.'),
    pick: z
      .union([path('A path.'), z.array(z.string().max(256)).min(1).max(100)])
      .optional()
      .describe(
        'Replaces an object, or each item of a list, by its value at a path, or by an object with these members.',
      ),
    flatten: optionalBoolean('Replaces a list of lists by one list.'),
    unique_by: path(
      'Drops the items of a list whose value at this path an earlier item has; `""`: equal items.',
    ).optional(),
    count: optionalBoolean('Replaces a list by the number of its items.'),
  })
  .superRefine((selection, context) => {
    const given = selections.filter(kind => selection[kind] !== undefined)
    if (given.length !== 1) context.addIssue({ code: 'custom', message: `a step has one of ${selections.join(', ')}.` })
    else if (selection.descending !== undefined && selection.sort_by === undefined)
      context.addIssue({ code: 'custom', path: ['descending'], message: "'descending' needs 'sort_by'." })
  })
  .meta({ id: 'Selection', description: 'One step of a selection.' })
export type Selection = z.output<typeof SelectionSchema>

export const SelectRequest = namedObject('SelectRequest', 'A value, and how to select from it.', {
  input: z.unknown().describe('The value, nearly always a reference: `${nodes.a.result}`.'),
  steps: z.array(SelectionSchema).min(1).max(32).describe('What to do with it, in order.'),
}).superRefine(({ input }, context) => {
  if (input === undefined)
    context.addIssue({
      code: 'invalid_type',
      expected: 'unknown' as never,
      path: ['input'],
      input,
      message: 'Required.',
    })
})
export type SelectRequest = z.output<typeof SelectRequest>

export const SelectResult = namedObject('SelectResult', 'What was selected.', {
  value: anything('The selected value.'),
})
export type SelectResult = z.output<typeof SelectResult>

export const RunWorkflowRequest = namedObject('RunWorkflowRequest', 'A stored workflow to run.', {
  workflow: z.string().min(1).max(256).describe('Id of the workflow, or its name.'),
  version: z.int().min(1).optional().describe('Version of the workflow. Default: the newest when the node starts.'),
  input: z.record(z.string(), z.unknown()).optional().describe('Values of its parameters by name. Default: none.'),
})
export type RunWorkflowRequest = z.output<typeof RunWorkflowRequest>

export const RunWorkflowResult = z
  .record(
    z.string(),
    z.object({
      result: anything('The result of the node, or the parts of it that its `outputs` keep.'),
      values: anyObject('The kept values by their paths.'),
    }),
  )
  .meta({ id: 'RunWorkflowResult', description: 'The outputs of the execution of a workflow, by its nodes.' })
export type RunWorkflowResult = z.output<typeof RunWorkflowResult>
