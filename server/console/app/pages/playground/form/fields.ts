import type { JsonSchema } from '../../../api/schema.ts'
import type { Medium } from '../../../components/result/result-facts.ts'

/** The control that a field gets. */
export type FieldKind = 'text' | 'line' | 'texts' | 'number' | 'choice' | 'shape' | 'yes-no' | 'media' | 'json'

/** A field of a form. */
export interface FormField {
  name: string
  /** For people: `Negative prompt`. */
  label: string
  hint: string
  kind: FieldKind
  /** Of `media`, where the name does not say it. */
  medium?: Medium
  required: boolean
  /** Shown at first; the others are under "More parameters". */
  main: boolean
  /** Of `choice` and `shape`. */
  options: readonly string[]
  /** Of `number`. */
  whole: boolean
  minimum?: number
  maximum?: number
  /** Of `number`: the value that counts where none is sent, as far as the description has one. */
  byDefault?: number
}

/** The parts of a task that its form needs. */
export interface FormTask {
  form: { hidden_fields: readonly string[]; more_fields: readonly string[] }
  media_fields: readonly string[]
  input_schema: Readonly<Record<string, unknown>>
}

/**
 * Fields that a form does not show: other names of fields that it shows, fields that only say how a program wants the
 * answer, and those that the page sets itself.
 */
const hidden: ReadonlySet<string> = new Set([
  'cache_salt',
  'embedding_type',
  'function_call',
  'functions',
  'known_speaker_names',
  'known_speaker_references',
  'max_completion_tokens',
  'metadata',
  'moderation',
  'output_dtype',
  'output_dimension',
  'partial_images',
  'previews',
  'priority',
  'prompt_optimizer',
  'steps',
  'stream_format',
  'sync_mode',
  'topN',
  'truncate',
  'truncate_prompt_tokens',
  'user',
])
/** Fields that are shown at first although a request needs not have them, in this order. */
const mainFields: readonly string[] = [
  'image_url',
  'image',
  'mask_url',
  'mask',
  'video_url',
  'audio_url',
  'url',
  'query',
  'prompt',
  'input',
  'documents',
  'text_1',
  'text_2',
  'voice',
  'preset',
  'aspect_ratio',
  'duration',
  'num_images',
  'n',
  'size',
  'language',
  'response_format',
  'speed',
  'seed',
  'strength',
]
const longTexts = /^(prompt|negative_prompt|input|instructions|query|suffix|text|reference_text)$/
const mediaWords = /^(image_url|mask_url|video_url|audio_url|reference_audio|image|mask|url)$/

/** Returns the fields of a task's form: those that people need first, then the others as the schema has them. */
export function fieldsOf(task: FormTask): FormField[] {
  const schema = task.input_schema as JsonSchema
  const without = new Set(task.form.hidden_fields)
  return Object.entries(schema.properties ?? {})
    .filter(([name, property]) => !hidden.has(name) && !without.has(name) && !isAny(property))
    .map(([name, property]) => fieldOf(task, name, property))
    .toSorted((a, b) => Number(b.main) - Number(a.main) || rank(a) - rank(b))
}

const rank = ({ main, name }: FormField): number =>
  main && mainFields.includes(name) ? mainFields.indexOf(name) : mainFields.length
const isAny = (schema: JsonSchema): boolean => Object.keys(schema).every(name => name === 'description')

function fieldOf(task: FormTask, name: string, property: JsonSchema): FormField {
  const { required = [], $defs = {} } = task.input_schema as JsonSchema
  const choices = choicesOf(property, $defs)
  const [first] = choices
  const isMedia = task.media_fields.includes(name) || mediaWords.test(name)
  const kind = isMedia ? 'media' : kindOf(name, choices)
  const isRequired = required.includes(name)
  return {
    name,
    label: labelOf(name),
    hint: plain(property.description ?? ''),
    kind,
    required: isRequired,
    main: isRequired || (mainFields.includes(name) && !task.form.more_fields.includes(name)),
    options:
      kind === 'choice' || kind === 'shape' ? choices.flatMap(one => one.enum ?? one.const ?? []).map(String) : [],
    whole: first?.type === 'integer',
    minimum: first?.minimum,
    maximum: first?.maximum,
    ...(kind === 'number' ? { byDefault: defaultIn(property.description) } : {}),
  }
}

/** `Default: 0.8, with a mask 1.` → 0.8; `Default: that of the model, else 30.` → 30 */
function defaultIn(description = ''): number | undefined {
  const found = /Default: (?:[^.]*\belse )?(\d+(?:\.\d+)?)/.exec(description)
  return found ? Number(found[1]) : undefined
}

/** Returns what a value may be, without null and without references. */
function choicesOf(schema: JsonSchema, defs: Record<string, JsonSchema>): JsonSchema[] {
  const own = schema.$ref ? (defs[schema.$ref.slice('#/$defs/'.length)] ?? {}) : schema
  const choices = own.anyOf ?? own.oneOf
  if (choices) return choices.flatMap(one => choicesOf(one, defs))
  const types = [own.type ?? []].flat()
  if (types.length === 1 && types[0] === 'null') return []
  return [types.length > 1 ? { ...own, type: types.find(type => type !== 'null')! } : own]
}

function kindOf(name: string, choices: readonly JsonSchema[]): FieldKind {
  const [first] = choices
  const textLists = choices.some(({ type, items }) => type === 'array' && isText(items))
  if (!first) return 'json'
  if (choices.some(one => one.enum ?? one.const) && choices.every(({ type }) => type === 'string'))
    return name === 'aspect_ratio' ? 'shape' : 'choice'
  if (name !== 'prompt' && textLists && choices.every(({ type }) => type === 'string' || type === 'array'))
    return 'texts'
  if (choices.some(({ type, enum: all }) => type === 'string' && !all)) return longTexts.test(name) ? 'text' : 'line'
  if (choices.some(one => one.enum)) return name === 'image_size' ? 'shape' : 'choice'
  if (first.type === 'integer' || first.type === 'number') return 'number'
  return first.type === 'boolean' ? 'yes-no' : 'json'
}
const isText = (items: JsonSchema | undefined): boolean =>
  items?.type === 'string' || ((items?.anyOf ?? items?.oneOf)?.some(({ type }) => type === 'string') ?? false)

/** `num_inference_steps` → `Inference steps` */
function labelOf(name: string): string {
  const words = name
    .replace(/^num_/, '')
    .replace(/_url$|^url$/, found => (found === 'url' ? 'audio' : ''))
    .replaceAll('_', ' ')
  return words[0]!.toUpperCase() + words.slice(1)
}

const plain = (markdown: string): string => markdown.replaceAll('`', '')

/** What a person has entered, by the name of the field: texts as they were typed. */
export type Entered = Readonly<Record<string, unknown>>

/** Why values cannot be sent, by the name of the field. */
export type FormFaults = Record<string, 'json' | 'number' | 'missing'>

/**
 * Returns the request that the entered values make: fields that are empty are left out, numbers are numbers, and JSON is
 * parsed. A value that cannot be sent is named in `errors`; everything else is checked by the server.
 */
export function formRequest(
  fields: readonly FormField[],
  entered: Entered,
): { request: Record<string, unknown>; errors: FormFaults } {
  const request: Record<string, unknown> = {}
  const errors: FormFaults = {}
  for (const { name, kind, required } of fields) {
    const value = entered[name]
    if (isEmpty(value)) {
      if (required) errors[name] = 'missing'
    } else if (kind === 'number') {
      const number = Number(value)
      if (Number.isNaN(number)) errors[name] = 'number'
      else request[name] = number
    } else if (kind === 'json') {
      try {
        request[name] = typeof value === 'string' ? JSON.parse(value) : value
      } catch {
        errors[name] = 'json'
      }
    } else if (kind === 'yes-no') request[name] = value === true || value === 'yes'
    else request[name] = kind === 'texts' ? textsOf(value).filter(text => text !== '') : value
  }
  return { request, errors }
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.every(one => one === ''))
/** A value as a person would type it. */
function shownText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

export const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.map(one => (typeof one === 'string' ? one : JSON.stringify(one))) : [shownText(value)]

/**
 * Returns what the form shows for a request, such as the inputs of an earlier job, whose files are `image` and not
 * `image_url`.
 */
export function enteredOf(fields: readonly FormField[], request: Readonly<Record<string, unknown>>): Entered {
  return Object.fromEntries(
    fields.flatMap(({ name, kind }): [name: string, value: unknown][] => {
      const value = request[name] ?? request[name.replace(/_url$/, '')]
      if (value === undefined || value === null) return []
      if (kind === 'json') return [[name, JSON.stringify(value, null, 2)]]
      if (kind === 'yes-no') return [[name, value === true ? 'yes' : 'no']]
      if (kind === 'texts') return [[name, textsOf(value)]]
      return [[name, shownText(value)]]
    }),
  )
}
