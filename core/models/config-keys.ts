import { stringify } from 'yaml'
import { type EnvironmentVariable, environmentVariables } from '../environment-variables.ts'
import type { ConfigSource, ConfigValue, VariableValue } from '../inspection.ts'
import { nearest } from '../nearest.ts'
import { typeText } from '../schemas/type-text.ts'
import { needsNewEngine } from './change.ts'
import { type Config, describedSchema } from './config.ts'
import { type DescribedSchema, writtenDefault, writtenValue } from './described-schema.ts'
import { modelFields } from './model.ts'

/** A key of infer.yaml, as the configuration reference describes it. */
export interface ConfigKey {
  /** Path in the file: `limits.json_body`, `models[].memory`. */
  key: string
  section: ConfigSection
  meaning: string
  /** Such as `size`, `duration`, `whole number from 1`, `one of local, token`. */
  type: string
  /** Unit of a number; null for other types. */
  unit: string | null
  required: boolean
  /** The default as it is written in the file; null without a default. */
  default: string | null
  /** The behaviour without the key, as the end of a sentence; null if the key has a default or is required. */
  absent: string | null
  /** When a change takes effect, as the end of a sentence. */
  applies: string
  /** A file that sets the key. */
  example: string
}

/** The sections of the reference in their order, with a sentence about each. */
export const sections = {
  server: { title: 'Server', about: 'Addresses, hosts and who may reach the server.' },
  own: { title: 'Models: name and tasks', about: 'The name of a model and its tasks.' },
  names: {
    title: 'Models: further names',
    about:
      'Other names of a model, with other defaults and prices, its LoRA adapters, and the models that answer in its place.',
  },
  launch: { title: 'Models: engine', about: 'How the engine of a model is started, and what it can access.' },
  residency: { title: 'Models: memory, slots and time', about: 'Devices, memory, slots and timeouts of a model.' },
  gguf: {
    title: 'Models: built-in engine',
    about: 'For `engine: gguf`. Other engines refuse all but `context_length`.',
  },
  python: {
    title: 'Models: Python libraries',
    about: 'For `engine: python`, also `threads`. Other engines refuse them.',
  },
  speech: { title: 'Models: speech', about: 'For models that turn text into audio.' },
  embeddings: { title: 'Models: embeddings', about: 'For models that turn text into vectors.' },
  pools: { title: 'Pools of machines', about: 'Machines besides this one on which engines may run.' },
  peers: { title: 'Other infers', about: 'Other infers whose models are offered here.' },
  plans: {
    title: 'Plans of organizations',
    about: 'Limits of organizations by plan. An organization may have figures of its own.',
  },
  media: { title: 'Fetching and decoding media', about: 'Images, audio and videos that requests name by a URL.' },
  webhooks: { title: 'Sending webhooks', about: 'Where webhooks may be sent, and when they are sent again.' },
  limits: { title: 'Limits and timeouts', about: 'Limits of the whole server.' },
  caches: { title: 'Saved conversations', about: 'What is kept of conversations when their model is unloaded.' },
} as const
export type ConfigSection = keyof typeof sections

/** The model in the example of a key that needs no other model. */
const usualModel = { id: 'qwen3-8b', source: '/models/qwen3-8b-q4_k_m.gguf' }

/** Returns every key of infer.yaml, in the order of the reference. */
export function configKeys(): ConfigKey[] {
  const root = describedSchema()
  const follow = (schema: DescribedSchema): DescribedSchema => {
    const { $ref: reference, ...own } = schema
    const target = reference === undefined ? schema : root.$defs![reference.split('/').at(-1)!]!
    const [only, ...others] = (target.anyOf ?? []).filter(({ type }) => type !== 'null')
    return only && others.length === 0 ? { ...follow(only), ...own } : { ...target, ...variantsOf(target), ...own }
  }

  /** The keys of all kinds of an object whose key `kind` says which it has. */
  function variantsOf({ oneOf = [] }: DescribedSchema): Pick<DescribedSchema, 'properties' | 'required'> {
    const kinds = oneOf.map(follow).filter(({ properties }) => properties?.kind)
    if (kinds.length === 0) return {}
    const properties = Object.assign({}, ...kinds.map(one => one.properties)) as Record<string, DescribedSchema>
    const { const: _, ...kind } = properties.kind!
    return {
      properties: { ...properties, kind: { ...kind, enum: kinds.map(one => one.properties!.kind!.const) } },
      required: kinds.flatMap(({ required = [] }) => required),
    }
  }

  function walk(schema: DescribedSchema, before: string): ConfigKey[] {
    return Object.entries(schema.properties ?? {}).flatMap(([name, value]) => {
      const property = follow(value)
      const key = `${before}${name}`
      const own = describe(key, property, schema.required?.includes(name) ?? false, follow)
      const items = property.items && follow(property.items)
      const named = typeof property.additionalProperties === 'object' && follow(property.additionalProperties)
      return [
        own,
        ...walk(property, `${key}.`),
        ...(items ? walk(items, `${key}[].`) : []),
        ...(named ? walk(named, `${key}.<name>.`) : []),
      ]
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
        ? key === 'models' || /^(plans|gpu|caches|pools|peers)\b/.test(key)
          ? 'when the file is saved'
          : 'at the next start of the server'
        : needsNewEngine(field)
          ? 'when the file is saved, by a new engine'
          : 'when the file is saved; engines keep running',
    example: stringify(exampleOf(key, schema)).trimEnd(),
  }
}

function sectionOf(key: string, field: string | undefined): ConfigSection {
  const found = Object.entries(modelFields).find(([, fields]) => field !== undefined && field in fields)
  if (found) return found[0] as ConfigSection
  if (key === 'models') return 'own'
  const [first] = key.split('.')
  return (
    (['media', 'webhooks', 'pools', 'peers', 'plans', 'limits', 'caches'].find(section => section === first) as
      | ConfigSection
      | undefined) ?? 'server'
  )
}

function typeOf(schema: DescribedSchema, follow: (schema: DescribedSchema) => DescribedSchema): string {
  if (schema.unit === 'milliseconds') return 'duration'
  if (schema.unit === 'bytes') return 'size'
  if (schema.enum) return `one of ${schema.enum.join(', ')}`
  const items = schema.items && follow(schema.items)
  if (items?.enum) return `list of ${items.enum.join(', ')}`
  if (typeof schema.additionalProperties === 'object')
    return follow(schema.additionalProperties).properties ? 'names with keys' : 'names with texts'
  if (schema.properties) return 'keys'
  return typeText(schema, follow)
}

/** Returns the value without the key: its default, `required`, or a text such as `the id`. */
export const defaultText = ({ required, default: value, absent }: ConfigKey): string =>
  required ? 'required' : (value ?? absent ?? 'none')

/** Formats a value as YAML on one line. */
const inLine = (value: unknown): string | null =>
  value === undefined ? null : stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim()

/** Returns the object with a value at this path. */
function placed(whole: unknown, [first, ...rest]: readonly string[], value: unknown): unknown {
  if (first === undefined) return value
  const known = (whole ?? {}) as Record<string, unknown>
  return { ...known, [first]: placed(known[first], rest, value) }
}

/** Returns a whole file with the example of a key. */
function exampleOf(key: string, { example, with: more }: DescribedSchema): unknown {
  const within = (path: readonly string[]): unknown =>
    path.length === 0 ? example : { [path[0]!]: within(path.slice(1)) }
  if (!key.startsWith('models[].') && key.includes('[].')) return more
  if (!key.startsWith('models[].')) return placed(more ?? {}, key.replace('<name>', 'team').split('.'), example)
  if (more && 'models' in more) return more
  // An item of a list needs its other keys too.
  if (key.includes('[].', 'models[].'.length)) return { models: [more] }
  return {
    models: [{ ...(more ?? usualModel), ...(within(key.replace('<name>', 'team').split('.').slice(1)) as object) }],
  }
}

/**
 * Returns the keys that match a text: the whole key, with or without list indexes (`models[0].memory`, `models.memory`),
 * else every key that ends with it (`memory`).
 */
export function findConfigKeys(text: string, keys: readonly ConfigKey[]): ConfigKey[] {
  const plain = plainKey(text)
  const exact = keys.filter(({ key }) => plainKey(key) === plain)
  return exact.length > 0 ? exact : keys.filter(({ key }) => plainKey(key).endsWith(`.${plain}`))
}

/** Returns at most `max` keys that are similar to a key that does not exist, most similar first. */
export function nearestConfigKeys(text: string, keys: readonly ConfigKey[], max = 3): string[] {
  const requested = plainKey(text)
  const names = new Map<string, string[]>()
  for (const { key } of keys)
    for (const name of [plainKey(key), plainKey(key).split('.').at(-1)!])
      names.set(name, [...(names.get(name) ?? []), key])
  const found: string[] = []
  for (const remaining = new Set(names.keys()); found.length < max; ) {
    const similar = nearest(requested, remaining) ?? nearest(requested.split('.').at(-1)!, remaining)
    if (similar === undefined) break
    remaining.delete(similar)
    for (const key of names.get(similar)!) if (!found.includes(key)) found.push(key)
  }
  return found.slice(0, max)
}

const plainKey = (key: string): string =>
  key
    .trim()
    .toLowerCase()
    .replaceAll(/\[\d*\]/g, '')

/** Models have a page of their own, and their keys may contain secrets. */
const isShown = ({ key }: ConfigKey): boolean => key !== 'models' && !/\[\]|<name>/.test(key)

/**
 * Returns every key of infer.yaml but those of models and plans, with the value that is in force and where it comes
 * from. `isInFile` says whether the file sets a key, `fromCommandLine` names those that an option overrides, `pending`
 * those that the file has changed since the start, such as `limits.drain_timeout` or `media`.
 */
export function configValues(
  config: Config,
  keys: readonly ConfigKey[],
  options: {
    isInFile: (path: readonly string[]) => boolean
    fromCommandLine: readonly string[]
    pending: readonly string[]
  },
): ConfigValue[] {
  const { isInFile, fromCommandLine, pending } = options
  const shown = keys.filter(isShown)
  // A key with keys below has no value of its own.
  const own = shown.filter(({ key }) => !shown.some(other => other.key.startsWith(`${key}.`)))
  return own.map(about => {
    const { key, section, meaning, absent, default: written } = about
    const path = key.split('.')
    const source: ConfigSource = fromCommandLine.includes(key) ? 'command_line' : isInFile(path) ? 'file' : 'default'
    const value = path.reduce<unknown>((of, name) => (of as Record<string, unknown> | undefined)?.[name], config)
    return {
      key,
      section: sections[section].title,
      meaning,
      // For plans only the names are shown, because their figures are limits of organizations.
      value: inLine(key === 'plans' ? Object.keys(value as object) : writtenValue(value, about.unit ?? undefined)),
      absent,
      default: written,
      source,
      isPending: pending.some(name => key === name || key.startsWith(`${name}.`)),
    }
  })
}

/** A password in an address. */
const credentials = /:\/\/[^/\s]*@/

/** Returns the environment variables that infer reads. Values that may be or contain a secret are left out. */
export const variableValues = (environment: Readonly<Record<string, string | undefined>>): VariableValue[] =>
  Object.entries<EnvironmentVariable>(environmentVariables).map(([name, { meaning, default: without, secret }]) => {
    const value = environment[name]
    return {
      name,
      meaning,
      isSet: value !== undefined,
      value: value === undefined || secret || credentials.test(value) ? null : value,
      default: without,
    }
  })
