import { everyItem } from '../../../../../../core/workflows/references.ts'
import type { JsonSchema, Schema } from '../../../api/schema.ts'
import { outputText, visitTexts } from './references.ts'
import { isRecord, type Path } from './workflow-document.ts'

/** A task as `GET /api/tasks` returns it, as far as the editor reads it. */
export type TaskFacts = Pick<
  Schema<'TaskList'>['tasks'][number],
  'id' | 'title' | 'description' | 'category' | 'needs_model' | 'media_fields' | 'models'
> & { form: { panel: string }; input_schema: JsonSchema; output_schema: JsonSchema }

/** The kinds of values that a schema allows, of which the form shows one. */
export type FieldKind = 'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'object' | 'list' | 'any'

/** A schema without references and alternatives: the first alternative of each kind. */
interface InputShape {
  kinds: FieldKind[]
  description: string
  /** Allowed values of a choice. */
  values: unknown[]
  properties: Record<string, JsonSchema>
  required: string[]
  items?: JsonSchema
  minimum?: number
  maximum?: number
}

/** The kind of field: that of the value where the schema allows it, else the first. A reference is a text. */
export function fieldKind(value: unknown, kinds: readonly FieldKind[]): FieldKind {
  const allowed = (kind: FieldKind) => kinds.includes(kind)
  // While a number or a reference is typed, it is none yet, and the field must stay the same.
  const number = kinds.find(kind => kind === 'number' || kind === 'integer')
  if (typeof value === 'string' && number && !allowed('text') && !allowed('choice')) return number
  if (typeof value === 'string' && value.includes('${')) return 'text'
  if (typeof value === 'string') return allowed('text') || !allowed('choice') ? 'text' : 'choice'
  if (typeof value === 'number') return allowed('integer') ? 'integer' : 'number'
  if (typeof value === 'boolean') return 'boolean'
  if (Array.isArray(value)) return allowed('list') ? 'list' : 'any'
  if (isRecord(value)) return allowed('object') ? 'object' : 'any'
  return kinds[0] ?? 'any'
}

/** By whole schemas, of which each node of a task has the same. */
const shapes = new WeakMap<JsonSchema, InputShape>()

/** Reads a schema; `root` has the definitions that it refers to. What it returns is shared. */
export function shapeOf(schema: JsonSchema, root: JsonSchema): Readonly<InputShape> {
  if (schema !== root) return readShape(schema, root)
  let shape = shapes.get(schema)
  if (!shape) shapes.set(schema, (shape = readShape(schema, root)))
  return shape
}

function readShape(schema: JsonSchema, root: JsonSchema): InputShape {
  const shape: InputShape = { kinds: [], description: '', values: [], properties: {}, required: [] }
  gather(schema, root, shape, 0)
  return shape
}

const kindOfType: Record<string, FieldKind> = {
  string: 'text',
  number: 'number',
  integer: 'integer',
  boolean: 'boolean',
  object: 'object',
  array: 'list',
}

function gather(schema: JsonSchema, root: JsonSchema, shape: InputShape, depth: number): void {
  if (depth > 8) return
  shape.description ||= schema.description ?? ''
  if (schema.$ref?.startsWith('#/$defs/')) {
    const found = root.$defs?.[schema.$ref.slice('#/$defs/'.length)]
    if (found) gather(found, root, shape, depth + 1)
    return
  }
  for (const one of [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])])
    gather(one, root, shape, depth + 1)
  const add = (kind: FieldKind) => void (shape.kinds.includes(kind) || shape.kinds.push(kind))
  const values = choicesOf(schema)
  if (values) {
    shape.values.push(...values.filter(value => value !== null && !shape.values.includes(value)))
    return add('choice')
  }
  for (const type of [schema.type ?? []].flat()) if (kindOfType[type]) add(kindOfType[type])
  // The first alternative with members decides.
  if (schema.properties && Object.keys(shape.properties).length === 0) {
    shape.properties = schema.properties
    shape.required = schema.required ?? []
  } else if (schema.properties) shape.properties = withChoices(shape.properties, schema.properties)
  shape.items ??= schema.items
  shape.minimum ??= schema.minimum
  shape.maximum ??= schema.maximum
}

const choicesOf = (schema: JsonSchema): unknown[] | undefined =>
  schema.enum ?? ('const' in schema ? [schema.const] : undefined)

/** The properties with the choices of another alternative too, such as the role of a message. */
const withChoices = (properties: Record<string, JsonSchema>, others: Record<string, JsonSchema>) =>
  Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => {
      const [own, more] = [choicesOf(schema), others[name] && choicesOf(others[name])]
      return [name, own && more ? { enum: [...new Set([...own, ...more])] } : schema]
    }),
  )

/** A value in the result of a task, and what is in it. */
export interface OutputField {
  path: Path
  /** The last part of the path: `content`, `[0]`. */
  label: string
  kind: FieldKind
  description: string
  children: OutputField[]
}

const maxDepth = 7

interface TreeOptions {
  /** Whether the result is a list of results: that of a node with `for_each`. */
  isList?: boolean
  /** Whether lists show `[*]` too, which reads every item. */
  everyItems?: boolean
}

/** The result of a task as a tree. Of a list its first item is shown, because references name a position. */
export const outputFields = (
  schema: JsonSchema,
  { isList = false, everyItems = false }: TreeOptions = {},
): OutputField[] =>
  isList
    ? fieldsOf(everyItems ? listParts(schema) : [[everyItem, schema]], schema, [], everyItems)
    : childrenOf(schema, schema, [], everyItems)

/** What is in a value of this schema, whose path is `path`. */
export const fieldsWithin = (schema: JsonSchema, root: JsonSchema, path: Path): OutputField[] =>
  childrenOf(schema, root, path, false)

type Part = readonly [string | number, JsonSchema]
const listParts = (items: JsonSchema): Part[] => [
  [everyItem, items],
  [0, items],
]

function childrenOf(schema: JsonSchema, root: JsonSchema, path: Path, everyItems: boolean): OutputField[] {
  if (path.length >= maxDepth) return []
  const { properties, items } = shapeOf(schema, root)
  const members: Part[] = Object.entries(properties)
  // One list of lists is enough to choose from.
  const inItems: Part[] = !items ? [] : everyItems && !path.includes(everyItem) ? listParts(items) : [[0, items]]
  return fieldsOf(members.length > 0 ? members : inItems, root, path, everyItems)
}

const fieldsOf = (parts: readonly Part[], root: JsonSchema, path: Path, everyItems: boolean): OutputField[] =>
  parts.map(([name, part]) =>
    fieldOf([...path, name], typeof name === 'number' ? outputText([name]) : name, part, root, everyItems),
  )

/** A value of this schema with what is in it. */
export function fieldOf(
  path: Path,
  label: string,
  schema: JsonSchema,
  root: JsonSchema,
  everyItems: boolean,
): OutputField {
  const { kinds, description } = shapeOf(schema, root)
  // A value of every item is a list of values.
  const kind = path.includes(everyItem) ? 'list' : (kinds[0] ?? 'any')
  return { path, label, kind, description, children: childrenOf(schema, root, path, everyItems) }
}

/** The schema at a path, whatever the positions in lists; undefined if it is not known. */
export function schemaAt(schema: JsonSchema, root: JsonSchema, path: Path): JsonSchema | undefined {
  let found: JsonSchema | undefined = schema
  for (const step of path) {
    if (!found) return undefined
    const { properties, items }: Readonly<InputShape> = shapeOf(found, root)
    found = typeof step === 'number' ? items : properties[step]
  }
  return found
}

/** The values without members, in order. */
export const leavesOf = (outputs: readonly OutputField[]): OutputField[] =>
  outputs.flatMap(output => (output.children.length > 0 ? leavesOf(output.children) : [output]))

/** What people mostly want of a result, best first. */
const wanted = [/(^|\.)content$/, /(^|_|\.)url$/, /(^|\.)text$/, /(^|\.)embedding$/, /(^|\.)document$/, /(^|\.)score$/]

/** The output that a node shows first: the text of an answer, the URL of an image. */
export function mainOutput(outputs: readonly OutputField[]): OutputField | undefined {
  // Numbers of a vector are no value that anybody takes alone: the list is.
  const leaves = leavesOf(outputs)
  for (const pattern of wanted) {
    const found = leaves.find(({ path }) => pattern.test(path.filter(part => typeof part === 'string').join('.')))
    if (found) return typeof found.path.at(-1) === 'number' ? parentOf(outputs, found.path) : found
  }
  return leaves[0]
}

function parentOf(outputs: readonly OutputField[], path: Path): OutputField | undefined {
  let list = outputs
  let found: OutputField | undefined
  for (const part of path.slice(0, -1)) {
    found = list.find(output => output.path.at(-1) === part)
    list = found?.children ?? []
  }
  return found
}

/** Inputs of a new node: required fields with empty values, so that they can be filled in and connected. */
export function firstInputs(schema: JsonSchema): Record<string, unknown> {
  const { properties, required } = shapeOf(schema, schema)
  return Object.fromEntries(
    required.flatMap(name => {
      const value = firstValue(properties[name] ?? {}, schema, 0)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

/** The smallest value that a form can show; undefined if there is none without a decision of a person. */
export function firstValue(schema: JsonSchema, root: JsonSchema, depth: number): unknown {
  const { kinds, properties, required, items, values, minimum } = shapeOf(schema, root)
  const [kind] = kinds
  if (kind === 'choice') return values[0]
  if (kind === 'text') return ''
  if (kind === 'number' || kind === 'integer') return minimum ?? 0
  if (kind === 'boolean') return false
  if (kind === 'list') {
    const item = items && depth < 3 ? firstValue(items, root, depth + 1) : undefined
    return item === undefined ? [] : [item]
  }
  if (kind !== 'object' || depth >= 3) return undefined
  const made: Record<string, unknown> = {}
  for (const name of required) made[name] = firstValue(properties[name] ?? {}, root, depth + 1)
  return made
}

/** A place of the inputs that a value can be dragged to. */
export interface InputPort {
  path: Path
  required: boolean
}

const maxPorts = 40

/**
 * The places that a node offers: its required fields, the texts that it has, and with `all` every field. `messages` is
 * offered as the texts in it, because that is what people connect.
 */
export function inputPorts(
  schema: JsonSchema,
  inputs: Record<string, unknown>,
  media: readonly string[],
  all: boolean,
) {
  const { properties, required } = shapeOf(schema, schema)
  const ports: InputPort[] = []
  const shown = [...required, ...Object.keys(inputs), ...media]
  const names = new Set(all || shown.length === 0 ? [...shown, ...Object.keys(properties)] : shown)
  for (const name of names) {
    const before = ports.length
    textPlaces(inputs[name], [name], path => ports.push({ path, required: required.includes(name) }))
    if (ports.length === before) ports.push({ path: [name], required: required.includes(name) })
  }
  return ports.slice(0, maxPorts)
}

/** Texts in lists and objects. A number or a choice at the top is one place; inside it is none. */
const textPlaces = (value: unknown, top: Path, found: (path: Path) => void): void =>
  visitTexts(
    value,
    (_, path) => {
      // The role of a message is no place for a value.
      if (path.length === 1 || !['role', 'type'].includes(String(path.at(-1)))) found(path)
    },
    top,
  )
