import { Document, isCollection, isMap, isPair, isScalar, isSeq, parseDocument, visit, YAMLMap, YAMLSeq } from 'yaml'
import type { z } from 'zod'
import { Failure } from '../failure.ts'
import { parseConfig } from './config.ts'
import type { Model } from './model.ts'
import { poolsOf } from './pools.ts'

/** A model as it is written in infer.yaml: the fields that differ from the defaults. */
export type ModelEntry = z.input<typeof Model>
/** Fields with their new values; null removes a field. */
export type ModelChange = { [Field in keyof ModelEntry]?: ModelEntry[Field] | null }

/** The first line of a file that infer creates: editors with a YAML language server complete and check the file with it. */
export const schemaFile = 'infer.schema.json'
export const schemaHint = `# yaml-language-server: $schema=./${schemaFile}\n`

/**
 * `addModel`, `removeModel` and `changeModel` edit the text of infer.yaml. Only the affected lines change; comments and
 * layout stay. They throw what `parseConfig` throws if the text before or after the edit is invalid. `path` is used only
 * in messages.
 */

/** Adds a model at the end of the list. Throws Failure `conflict` if the id is in use. */
export function addModel(text: string, entry: ModelEntry, path = 'infer.yaml'): string {
  const document = read(text, path)
  const models = document.get('models')
  if (listed(models).some(item => idOf(item) === entry.id))
    throw new Failure(
      'conflict',
      `${path} already has a model '${entry.id}'. Choose another id, or remove that model first.`,
    )
  const node = written(document, entry)
  let spliced: string | undefined
  if (document.contents === null)
    spliced = `${text.trim() === '' ? schemaHint : ensureEnd(text)}models:\n${block([node], '  ')}`
  else if (isMap(document.contents) && !document.contents.flow && !document.has('models'))
    spliced = `${ensureEnd(text)}models:\n${block([node], '  ')}`
  else if (listed(models).length === 0) spliced = filled(text, document, node)
  else if (isSeq(models) && !models.flow) {
    const dash = dashOf(text, models.items.at(-1))
    const end = lineAfter(text, models.items.at(-1))
    if (dash && end !== undefined) {
      const apart = /\n[ \t]*\r?\n$/.test(text.slice(0, dash.at)) && models.items.length > 1 ? '\n' : ''
      spliced = insert(text, end, apart + block([node], dash.indent))
    }
  }
  if (isSeq(models)) models.add(node)
  else document.set('models', sequence([node]))
  return checked(document, spliced, text, path)
}

/** Sets `toys: true`, so that the toy models stay beside those that are configured. Text that has the setting stays. */
export function offerToys(text: string, path = 'infer.yaml'): string {
  const document = read(text, path)
  if (document.has('toys')) return text
  const line = 'toys: true\n'
  const isBlock = document.contents === null || (isMap(document.contents) && !document.contents.flow)
  const start = text.trim() === '' ? schemaHint : ensureEnd(text)
  document.set('toys', true)
  return checked(document, isBlock ? start + line : undefined, text, path)
}

/** Returns the text with a first model in its empty list; undefined if the list is not on its own line. */
function filled(text: string, document: Document, node: unknown): string | undefined {
  const pair = (document.contents as YAMLMap).items.find(({ key }) => isScalar(key) && key.value === 'models')
  const from = startOf(pair?.value)
  const to = contentEnd(pair?.value)
  if (from === undefined || to === undefined || (document.contents as YAMLMap).flow) return undefined
  const rest = text.slice(to)
  const before = /^\r?(\n|$)/.test(rest) ? text.slice(0, from).trimEnd() : text.slice(0, from)
  return insert(before + rest, lineAfter(before + rest, pair!.key)!, block([node], '  '))
}

/** Adds a pool at the end of `pools`. Throws Failure `conflict` if the name is in use. */
export function addPool(text: string, name: string, settings: object, path = 'infer.yaml'): string {
  const document = read(text, path)
  const pools = document.get('pools')
  if (isMap(pools) && pools.has(name))
    throw new Failure(
      'conflict',
      `${path} already has a pool '${name}'. Choose another name, or remove that pool first.`,
    )
  const lines = block(mapping(document, name, settings), '  ')
  let spliced: string | undefined
  if (!document.has('pools') && (document.contents === null || (isMap(document.contents) && !document.contents.flow)))
    spliced = `${text.trim() === '' ? schemaHint : ensureEnd(text)}pools:\n${lines}`
  else if (isMap(pools) && !pools.flow) {
    const end = lineAfter(text, pools.items.at(-1)?.value)
    const indent = ' '.repeat(columnOf(text, startOf(pools.items[0]?.key) ?? 0))
    if (end !== undefined) spliced = insert(text, end, block(mapping(document, name, settings), indent))
  }
  document.setIn(['pools', name], written(document, settings))
  return checked(document, spliced, text, path)
}

/**
 * Removes a pool with the comments inside its entry, and `pools` with the last one. Throws Failure `not_found`, and `conflict` while
 * models name it.
 */
export function removePool(text: string, name: string, path = 'infer.yaml'): string {
  const document = read(text, path)
  const pools = document.get('pools')
  const pair = isMap(pools) ? pools.items.find(({ key }) => isScalar(key) && key.value === name) : undefined
  if (!isMap(pools) || !pair) throw new Failure('not_found', `${path} has no pool '${name}'. See: infer pool list`)
  const { models } = parseConfig(text, path)
  const users = models.flatMap(model => (poolsOf(model).some(({ pool }) => pool === name) ? [`'${model.id}'`] : []))
  if (users.length > 0)
    throw new Failure(
      'conflict',
      `In ${path} ${users.join(', ')} ${users.length === 1 ? 'names' : 'name'} the pool '${name}'. Take it out of 'pools' there first.`,
    )
  const isLast = pools.items.length === 1
  const root = document.contents as YAMLMap
  const whole = isLast ? root.items.find(({ key }) => isScalar(key) && key.value === 'pools')! : pair
  const from = startOf(whole.key)
  const end = lineAfter(text, whole.value)
  let spliced: string | undefined
  if (!(isLast ? root : pools).flow && from !== undefined && end !== undefined) {
    const start = text.lastIndexOf('\n', from - 1) + 1
    if (text.slice(start, from).trim() === '') spliced = text.slice(0, start) + text.slice(end)
  }
  if (isLast) document.delete('pools')
  else pools.delete(name)
  return checked(document, spliced, text, path)
}

/** Removes a model with the comments inside its entry; those around it stay. Throws Failure `model_not_found`. */
export function removeModel(text: string, id: string, path = 'infer.yaml'): string {
  const document = read(text, path)
  const { models, at } = find(document, id, path)
  let spliced: string | undefined
  if (!models.flow && models.items.length > 1) {
    const dash = dashOf(text, models.items[at])
    let end = lineAfter(text, models.items[at])
    if (dash && end !== undefined) {
      // Comments below it that are indented deeper than its dash belong to it.
      const inside = new RegExp(`^${dash.indent}[ \\t]+#.*(\\r?\\n|$)`)
      for (let line = inside.exec(text.slice(end)); line; line = inside.exec(text.slice(end))) end += line[0].length
      spliced = text.slice(0, dash.at) + text.slice(end)
    }
  }
  models.delete(at)
  if (models.items.length === 0) models.flow = true
  return checked(document, spliced, text, path)
}

/** Changes fields of a model. Throws Failure `model_not_found`. */
export function changeModel(text: string, id: string, change: ModelChange, path = 'infer.yaml'): string {
  let result = text
  for (const [field, value] of Object.entries(change))
    if (value !== undefined) result = changed(result, id, field, value, path)
  return result
}

function changed(text: string, id: string, field: string, value: unknown, path: string): string {
  const document = read(text, path)
  const { models, at } = find(document, id, path)
  const item = models.items[at] as YAMLMap
  const pair = item.items.find(one => isScalar(one.key) && one.key.value === field)
  if (!pair && value === null) return text
  const indent = ' '.repeat(columnOf(text, startOf(item.items[0]?.key) ?? 0))
  let spliced: string | undefined
  if (!item.flow && !models.flow) {
    const from = startOf(pair?.key)
    const to = contentEnd(pair?.value)
    if (pair && value !== null && from !== undefined && to !== undefined && text[to - 1] !== '\n')
      spliced = text.slice(0, from) + block(mapping(document, field, value), indent).trim() + text.slice(to)
    else if (pair && value === null && from !== undefined) {
      const start = text.lastIndexOf('\n', from - 1) + 1
      const end = lineAfter(text, pair.value)
      if (end !== undefined && text.slice(start, from).trim() === '') spliced = text.slice(0, start) + text.slice(end)
    } else if (!pair && value !== null) {
      const end = lineAfter(text, item)
      if (end !== undefined) spliced = insert(text, end, block(mapping(document, field, value), indent))
    }
  }
  if (value === null) item.delete(field)
  else item.set(field, written(document, value))
  return checked(document, spliced, text, path)
}

const layout = { lineWidth: 0, flowCollectionPadding: false } as const

function read(text: string, path: string): Document {
  parseConfig(text, path)
  return parseDocument(text)
}

/** Returns the spliced text if it has the same content as the changed document, else the document formatted again. */
function checked(document: Document, spliced: string | undefined, before: string, path: string): string {
  const expected = JSON.stringify(document.toJS())
  let result = spliced
  if (result === undefined || JSON.stringify(parseDocument(result).toJS()) !== expected)
    result = document.toString(layout)
  if (before.includes('\r\n')) result = result.replace(/\r?\n/g, '\r\n')
  parseConfig(result, path)
  return result
}

const listed = (models: unknown): unknown[] => (isSeq(models) ? models.items : [])
const idOf = (item: unknown): unknown => (isMap(item) ? item.get('id') : undefined)

function find(document: Document, id: string, path: string): { models: YAMLSeq; at: number } {
  const models = document.get('models')
  const at = listed(models).findIndex(item => idOf(item) === id)
  if (at < 0) throw new Failure('model_not_found', `${path} has no model '${id}'. See: infer model list`)
  return { models: models as YAMLSeq, at }
}

/** Turns a value into a node; lists of scalars are written on one line. */
function written(document: Document, value: unknown) {
  const node = document.createNode(value)
  visit(node, {
    Seq(_, sequence) {
      if (sequence.items.every(isScalar)) sequence.flow = true
    },
  })
  return node
}

function sequence(items: unknown[]): YAMLSeq {
  const made = new YAMLSeq()
  made.items = items
  return made
}

function mapping(document: Document, field: string, value: unknown): YAMLMap {
  const made = new YAMLMap()
  made.set(document.createNode(field), written(document, value))
  return made
}

/** Formats a list of nodes, or a mapping, as lines with this indentation. */
function block(content: unknown[] | YAMLMap, indent: string): string {
  const document = new Document()
  document.contents = (Array.isArray(content) ? sequence(content) : content) as Document['contents']
  return document.toString(layout).replace(/^(?=.)/gm, indent)
}

const ensureEnd = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`)
const insert = (text: string, at: number, lines: string): string =>
  ensureEnd(text.slice(0, at)) + lines + text.slice(at)
const columnOf = (text: string, at: number): number => at - (text.lastIndexOf('\n', at - 1) + 1)
const startOf = (node: unknown): number | undefined => (node as { range?: [number] } | undefined)?.range?.[0]

/** Returns where the content of a node ends, without comments. */
function contentEnd(node: unknown): number | undefined {
  if (isCollection(node) && !node.flow) {
    const last = node.items.at(-1)
    return contentEnd(isPair(last) ? (last.value ?? last.key) : last)
  }
  return (node as { range?: [number, number] } | null | undefined)?.range?.[1]
}

/** Returns where the line after a node begins. A block scalar ends with its own line break. */
function lineAfter(text: string, node: unknown): number | undefined {
  const end = contentEnd(node)
  if (end === undefined) return undefined
  const next = text.indexOf('\n', text[end - 1] === '\n' ? end - 1 : end)
  return next < 0 ? text.length : next + 1
}

/** Returns where the line of an item's dash begins, and the text before the dash. */
function dashOf(text: string, item: unknown): { at: number; indent: string } | undefined {
  const before = text.slice(0, startOf(item) ?? 0)
  const match = /(?:^|\n)([ \t]*)-[ \t]+$/.exec(before)
  return match ? { at: before.lastIndexOf('\n') + 1, indent: match[1]! } : undefined
}
