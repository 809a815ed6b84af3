import { placeOf } from '../schemas/issues.ts'
import {
  everyItem,
  isOfResult,
  parseTemplate,
  type Reference,
  ReferenceFault,
  type ReferenceStep,
  referenceText,
} from './references.ts'

/** The values that replace references. */
export interface Bindings {
  input: Readonly<Record<string, unknown>>
  /** By node id. A node that has not ended is absent. */
  nodes: Readonly<Record<string, unknown>>
  /** The nodes that have ended without a result: those that were skipped, and those whose failure is tolerated. */
  withoutResult?: ReadonlySet<string>
  /** The values of references to results of such nodes, by the text of the reference; null for those without one. */
  defaults?: ReadonlyMap<string, unknown>
  execution: Readonly<Record<string, unknown>>
  /** The item of a node with `for_each`, and its position; absent elsewhere. */
  item?: unknown
  index?: number | undefined
  /** Optional parameters without a value: null as a whole value, and empty within a text. */
  absent?: ReadonlySet<string>
  /**
   * The values of references into large results, by reference source: a thread has looked them up, and they are not
   * shared.
   */
  large?: ReadonlyMap<string, LargeValue>
  /** Between the items of a list that is inserted into a text; absent: it is inserted as JSON. */
  separator?: string | undefined
}
export type LargeValue = { value: unknown } | { missing: string }

/** The maximum length of all texts with inserted values together, in characters. */
export const maxText = 1 << 20

/** A reference to something that does not exist. Its message is the node's error, code `unresolved_reference`. */
export class Unresolved extends Error {
  override readonly name = 'Unresolved'
}

/**
 * Returns the inputs with every reference in their texts replaced. A text that is a single reference becomes the value
 * itself, of any type; otherwise values are inserted into the text, objects and lists as JSON. References inside a
 * value are never read. Throws Unresolved, or ReferenceFault for a reference with wrong syntax.
 */
export function bind(inputs: unknown, bindings: Bindings): unknown {
  let length = 0
  const fill = (value: unknown): unknown => {
    if (typeof value === 'string') return text(value)
    if (Array.isArray(value)) return value.map(fill)
    if (value === null || typeof value !== 'object') return value
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, fill(part)]))
  }
  const text = (template: string): unknown => {
    const parts = parseTemplate(template)
    if (parts.length === 1 && typeof parts[0] === 'object') {
      const value = resolve(parts[0], bindings) ?? null
      return bindings.large?.has(parts[0].source) ? value : structuredClone(value)
    }
    return parts
      .map(part => {
        const partText = typeof part === 'string' ? part : insertedText(resolve(part, bindings), bindings.separator)
        length += partText.length
        if (length > maxText) throw tooMuchText()
        return partText
      })
      .join('')
  }
  return fill(inputs)
}

const tooMuchText = () => new ReferenceFault('The references of this node make more than 1 MiB of text.')

export function insertedText(value: unknown, separator?: string): string {
  if (typeof value === 'string') return value
  if (value === undefined) return ''
  if (Array.isArray(value) && separator !== undefined) {
    const parts: string[] = []
    let length = 0
    for (const item of value) {
      const text = insertedText(item)
      length += text.length + separator.length
      // Its sum is not known before, and may be a thousand times the list.
      if (length - separator.length > maxText) throw tooMuchText()
      parts.push(text)
    }
    return parts.join(separator)
  }
  return JSON.stringify(value)
}

/**
 * Returns the value of a reference; undefined for an optional parameter without a value, and for a result that is missing
 * without a default. Reads own members only, never inherited ones. After `[*]` the value of an item that is null is null.
 */
export function resolve({ source, root, path }: Reference, bindings: Bindings): unknown {
  const large = bindings.large?.get(source)
  if (large && 'missing' in large) throw new Unresolved(large.missing)
  if (large) return large.value
  if (root === 'nodes' && isOfResult(path) && bindings.withoutResult?.has(String(path[0])))
    return bindings.defaults?.get(referenceText(root, path))
  if (root === 'input' && bindings.absent?.has(String(path[0]))) return undefined
  if (bindings[root] === undefined)
    throw new Unresolved(`\${${source}}: '${root}' is known only in the inputs of a node with 'for_each'.`)
  return reach(bindings[root], path, { at: 0, source, root })
}

/** The value at the steps of a path from the position `at` on. */
function reach(
  from: unknown,
  path: readonly ReferenceStep[],
  { at, source, root }: { at: number; source: string; root: string },
): unknown {
  let value = from
  for (let next = at; next < path.length; next++) {
    const step = path[next]!
    const missing = absence(value, step, next === 0 ? root : path[next - 1]!)
    if (missing !== undefined) throw new Unresolved(`\${${source}}: ${missing}`)
    if (step === everyItem) {
      const rest = { at: next + 1, source, root }
      return (value as unknown[]).map(item => (item === null ? null : reach(item, path, rest)))
    }
    value = (value as Record<ReferenceStep, unknown>)[step]
  }
  return value
}

/** Never read, even as own members, because they would be dangerous in a prototype. */
const unsafeNames: ReadonlySet<ReferenceStep> = new Set(['__proto__', 'constructor', 'prototype'])

/** Why the member does not exist, or undefined if it does. */
function absence(value: unknown, step: ReferenceStep, before: ReferenceStep): string | undefined {
  const name = before === everyItem ? 'an item' : `'${before}'`
  if (step === everyItem) return Array.isArray(value) ? undefined : `${name} is ${kindOf(value)}, so it has no items.`
  if (value === null || typeof value !== 'object') return `${name} is ${kindOf(value)}, so it has no '${step}'.`
  if (Array.isArray(value)) {
    if (typeof step !== 'number') return `${name} is a list, so it has no '${step}', only [0] and so on, and [*].`
    if (step < value.length) return undefined
    return `index ${step} not found (${name} has ${value.length} ${value.length === 1 ? 'item' : 'items'}).`
  }
  return Object.hasOwn(value, step) && !unsafeNames.has(step)
    ? undefined
    : `'${step}' not found in ${name}${known(value)}.`
}

const kindOf = (value: unknown): string =>
  value === null
    ? 'null'
    : value === undefined
      ? 'not there'
      : typeof value === 'object'
        ? 'an object'
        : `a ${typeof value}`

function known(value: object): string {
  const names = Object.keys(value)
  return names.length === 0 ? '' : ` (it has ${names.slice(0, 8).join(', ')}${names.length > 8 ? ', …' : ''})`
}

/** A reference or its fault, and its position. */
export interface FoundReference {
  /** The position within the value that was searched. */
  at: readonly ReferenceStep[]
  /** The position in the node as text: `inputs.messages[0].content`. */
  path: string
  /** Whether it is the whole text, so that the value keeps its type. */
  whole: boolean
  reference: Reference | ReferenceFault
}

const cachedReferences = new WeakMap<object, FoundReference[]>()

/**
 * All references in the texts of a member of a node. Cached by object, so the value must not be changed afterwards, and an
 * object must be that of one member only.
 */
export function referencesIn(
  value: unknown,
  member: 'inputs' | 'when' | 'for_each' = 'inputs',
): readonly FoundReference[] {
  const before = typeof value === 'object' && value !== null ? cachedReferences.get(value) : undefined
  if (before) return before
  const found: FoundReference[] = []
  visit(value, [], { found, member })
  if (typeof value === 'object' && value !== null) cachedReferences.set(value, found)
  return found
}

/** The references of a node: those of its condition, those of its list, then those of its inputs. */
export const referencesOfNode = (node: {
  inputs: unknown
  when?: unknown
  for_each?: unknown
}): readonly FoundReference[] =>
  node.when === undefined && node.for_each === undefined
    ? referencesIn(node.inputs)
    : [...referencesIn(node.when, 'when'), ...referencesIn(node.for_each, 'for_each'), ...referencesIn(node.inputs)]

/** `at` is the position of the value; it is restored before returning. */
function visit(value: unknown, at: ReferenceStep[], into: { found: FoundReference[]; member: string }): void {
  if (typeof value === 'string') {
    if (value.includes('${')) for (const one of referencesOf(value, [...at], into.member)) into.found.push(one)
  } else if (Array.isArray(value))
    for (let index = 0; index < value.length; index++) {
      at.push(index)
      visit(value[index], at, into)
      at.pop()
    }
  else if (value !== null && typeof value === 'object')
    for (const key of Object.keys(value)) {
      at.push(key)
      visit((value as Record<string, unknown>)[key], at, into)
      at.pop()
    }
}

/** The references of one text, each once however often it occurs, or the first fault in it. */
function referencesOf(text: string, at: readonly ReferenceStep[], member: string): FoundReference[] {
  const path = placeOf([member, ...at])
  try {
    const parts = parseTemplate(text)
    const whole = parts.length === 1
    const found = new Map<string, Reference>()
    for (const part of parts) if (typeof part === 'object') found.set(part.source, part)
    return [...found.values()].map(reference => ({ at, path, whole, reference }))
  } catch (thrown) {
    if (!(thrown instanceof ReferenceFault)) throw thrown
    return [{ at, path, whole: false, reference: thrown }]
  }
}
