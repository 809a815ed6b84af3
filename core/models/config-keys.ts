import { stringify } from 'yaml'
import { nearest } from '../nearest.ts'
import { typeText } from '../schemas/type-text.ts'
import { needsNewEngine } from './change.ts'
import { describedSchema } from './config.ts'
import { type DescribedSchema, writtenDefault } from './described-schema.ts'
import { modelFields } from './model.ts'

/** A key of infer.yaml, as the configuration reference describes it. */
export interface ConfigKey {
  /** Where it stands in the file: `limits.json_body`, `models[].memory`. */
  key: string
  section: Section
  meaning: string
  /** Such as `size`, `duration`, `whole number from 1`, `one of local, token`. */
  type: string
  /** What a number counts; null for what is no number. */
  unit: string | null
  required: boolean
  /** As it is written in the file; null where there is no such value. */
  default: string | null
  /** What holds without the key where it has no default, as the end of a sentence; null where it has one or is required. */
  absent: string | null
  /** When a change of it takes effect, as the end of a sentence. */
  applies: string
  /** A file that sets it. */
  example: string
}

/** The parts of the reference in their order, with a sentence about each. */
export const sections = {
  server: { title: 'Server', about: 'Addresses, hosts and who may reach the server.' },
  own: { title: 'Models: name and tasks', about: 'What a model is, and what it can be asked for.' },
  launch: { title: 'Models: engine', about: 'How the engine of a model is started, and what it can reach.' },
  residency: { title: 'Models: memory, slots and time', about: 'Where a model runs and how long things may last.' },
  gguf: { title: 'Models: built-in engine', about: 'For `engine: gguf`. Others refuse all but `context_length`.' },
  speech: { title: 'Models: speech', about: 'For models that turn text into audio.' },
  media: { title: 'Fetching and decoding media', about: 'Images, audio and videos that requests name by an address.' },
  limits: { title: 'Limits and timeouts', about: 'Bounds of the whole server.' },
} as const
export type Section = keyof typeof sections

/** A model that an example is about, where its key needs no other. */
const usualModel = { id: 'qwen3-8b', source: '/models/qwen3-8b-q4_k_m.gguf' }

/** Every key of infer.yaml that has a meaning of its own, in the order of the reference. */
export function configKeys(): ConfigKey[] {
  const root = describedSchema()
  const follow = (schema: DescribedSchema): DescribedSchema => {
    const { $ref: reference, ...own } = schema
    const target = reference === undefined ? schema : root.$defs![reference.split('/').at(-1)!]!
    const [only, ...others] = (target.anyOf ?? []).filter(({ type }) => type !== 'null')
    return only && others.length === 0 ? { ...follow(only), ...own } : { ...target, ...own }
  }

  function walk(schema: DescribedSchema, before: string): ConfigKey[] {
    return Object.entries(schema.properties ?? {}).flatMap(([name, value]) => {
      const property = follow(value)
      const key = `${before}${name}`
      const own = describe(key, property, schema.required?.includes(name) ?? false, follow)
      const items = property.items && follow(property.items)
      return [own, ...walk(property, `${key}.`), ...(items ? walk(items, `${key}[].`) : [])]
    })
  }

  const order = Object.keys(sections)
  return walk(follow(root), '').toSorted((a, b) => order.indexOf(a.section) - order.indexOf(b.section))
}

function describe(
  key: string,
  schema: DescribedSchema,
  isRequired: boolean,
  follow: (schema: DescribedSchema) => DescribedSchema,
): ConfigKey {
  const [, field] = /^models\[\]\.(\w+)/.exec(key) ?? []
  return {
    key,
    section: sectionOf(key, field),
    meaning: schema.description ?? '',
    type: typeOf(schema, follow),
    unit: schema.unit ?? null,
    required: isRequired,
    default: isRequired || schema.absent !== undefined ? null : inLine(writtenDefault(schema)),
    absent: schema.absent ?? null,
    applies:
      field === undefined
        ? key === 'models'
          ? 'when the file is saved'
          : 'at the next start of the server'
        : needsNewEngine(field)
          ? 'when the file is saved, by a new engine'
          : 'when the file is saved; engines go on',
    example: stringify(exampleOf(key, schema)).trimEnd(),
  }
}

function sectionOf(key: string, field: string | undefined): Section {
  const found = Object.entries(modelFields).find(([, fields]) => field !== undefined && field in fields)
  if (found) return found[0] as Section
  if (key === 'models') return 'own'
  const [first] = key.split('.')
  return first === 'media' || first === 'limits' ? first : 'server'
}

function typeOf(schema: DescribedSchema, follow: (schema: DescribedSchema) => DescribedSchema): string {
  if (schema.unit === 'milliseconds') return 'duration'
  if (schema.unit === 'bytes') return 'size'
  if (schema.enum) return `one of ${schema.enum.join(', ')}`
  const items = schema.items && follow(schema.items)
  if (items?.enum) return `list of ${items.enum.join(', ')}`
  if (typeof schema.additionalProperties === 'object') return 'names with texts'
  if (schema.properties) return 'keys'
  return typeText(schema, follow)
}

/** Returns what holds without the key: its default, `required`, or words such as `the id`. */
export const defaultText = ({ required, default: value, absent }: ConfigKey): string =>
  required ? 'required' : (value ?? absent ?? 'none')

/** A value as it stands behind its key: lists and objects on one line. */
const inLine = (value: unknown): string | null =>
  value === undefined ? null : stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim()

/** The whole file around the example of a key. */
function exampleOf(key: string, { example, with: more }: DescribedSchema): unknown {
  const within = (path: readonly string[]): unknown =>
    path.length === 0 ? example : { [path[0]!]: within(path.slice(1)) }
  if (!key.startsWith('models[].')) return within(key.split('.'))
  return { models: [{ ...(more ?? usualModel), ...(within(key.split('.').slice(1)) as object) }] }
}

/**
 * Returns the keys that a text means: the key as it is written, with or without the numbers of a list
 * (`models[0].memory`, `models.memory`), else every key that ends with it (`memory`).
 */
export function findConfigKeys(text: string, keys: readonly ConfigKey[]): ConfigKey[] {
  const plain = plainKey(text)
  const exact = keys.filter(({ key }) => plainKey(key) === plain)
  return exact.length > 0 ? exact : keys.filter(({ key }) => plainKey(key).endsWith(`.${plain}`))
}

/** Returns the keys that were probably meant by one that does not exist, nearest first. */
export function nearestConfigKeys(text: string, keys: readonly ConfigKey[], most = 3): string[] {
  const wanted = plainKey(text)
  const names = new Map<string, string[]>()
  for (const { key } of keys)
    for (const name of [plainKey(key), plainKey(key).split('.').at(-1)!])
      names.set(name, [...(names.get(name) ?? []), key])
  const found: string[] = []
  for (const left = new Set(names.keys()); found.length < most; ) {
    const near = nearest(wanted, left) ?? nearest(wanted.split('.').at(-1)!, left)
    if (near === undefined) break
    left.delete(near)
    for (const key of names.get(near)!) if (!found.includes(key)) found.push(key)
  }
  return found.slice(0, most)
}

const plainKey = (key: string): string =>
  key
    .trim()
    .toLowerCase()
    .replaceAll(/\[\d*\]/g, '')
