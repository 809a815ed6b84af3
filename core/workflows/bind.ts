import { placeOf } from '../schemas/issues.ts'
import { parseTemplate, type Reference, ReferenceFault, type Segment } from './references.ts'

/** What references are replaced by. */
export interface Bindings {
  input: Readonly<Record<string, unknown>>
  /** By node id. A node that has not ended is not among them; one whose failure is borne is null. */
  nodes: Readonly<Record<string, unknown>>
  execution: Readonly<Record<string, unknown>>
  /** Parameters that need not be given and have not been: null, and nothing within a text. */
  absent?: ReadonlySet<string>
  /** What references into large results come to, by their source: those were looked up elsewhere, and are nobody else's. */
  large?: ReadonlyMap<string, LargeValue>
}
export type LargeValue = { value: unknown } | { missing: string }

/** What all texts that references make may be long together, in characters. */
export const maxText = 1 << 20

/** A reference that points at nothing. Its message is the node's error, code `unresolved_reference`. */
export class Unresolved extends Error {
  override readonly name = 'Unresolved'
}

/**
 * The inputs with every reference in their texts replaced. A text that is one reference becomes the value itself, of
 * whatever type; otherwise values are written into the text, objects and lists as JSON. What a value says is never
 * looked at for references again. Throws Unresolved, or ReferenceFault for one that cannot be read.
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
      const value = look(parts[0], bindings) ?? null
      return bindings.large?.has(parts[0].source) ? value : structuredClone(value)
    }
    return parts
      .map(part => {
        const partText = typeof part === 'string' ? part : written(look(part, bindings))
        length += partText.length
        if (length > maxText) throw new ReferenceFault('The references of this node make more than 1 MiB of text.')
        return partText
      })
      .join('')
  }
  return fill(inputs)
}

export const written = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)

/**
 * The value that a reference points at; undefined for a parameter that was not given and need not be. Own members only:
 * what every object has is nobody's output.
 */
export function look({ source, root, path }: Reference, bindings: Bindings): unknown {
  const large = bindings.large?.get(source)
  if (large && 'missing' in large) throw new Unresolved(large.missing)
  if (large) return large.value
  let value: unknown = bindings[root]
  let before: Segment = root
  // Its failure is borne, so whoever refers to it gets nothing instead of failing as well.
  if (root === 'nodes' && Object.hasOwn(bindings.nodes, path[0]!) && bindings.nodes[path[0]!] === null) return null
  if (root === 'input' && bindings.absent?.has(String(path[0]))) return undefined
  for (const step of path) {
    const missing = absence(value, step, before)
    if (missing !== undefined) throw new Unresolved(`\${${source}}: ${missing}`)
    value = (value as Record<Segment, unknown>)[step]
    before = step
  }
  return value
}

/** Where somebody has put such a member into a value, it leads to no good. */
const neverRead: ReadonlySet<Segment> = new Set(['__proto__', 'constructor', 'prototype'])

/** Why there is no such member, or undefined when there is. */
function absence(value: unknown, step: Segment, before: Segment): string | undefined {
  if (value === null || typeof value !== 'object') return `'${before}' is ${kindOf(value)}, so it has no '${step}'.`
  if (Array.isArray(value)) {
    if (typeof step !== 'number') return `'${before}' is a list, so it has no '${step}', only [0] and so on.`
    if (step < value.length) return undefined
    return `index ${step} not found ('${before}' has ${value.length} ${value.length === 1 ? 'item' : 'items'}).`
  }
  return Object.hasOwn(value, step) && !neverRead.has(step)
    ? undefined
    : `'${step}' not found in '${before}'${known(value)}.`
}

const kindOf = (value: unknown): string =>
  value === null ? 'null' : value === undefined ? 'not there' : `a ${typeof value}`

function known(value: object): string {
  const names = Object.keys(value)
  return names.length === 0 ? '' : ` (it has ${names.slice(0, 8).join(', ')}${names.length > 8 ? ', …' : ''})`
}

/** A reference, or what is wrong with it, and where in the inputs it stands. */
export interface FoundReference {
  at: readonly Segment[]
  /** The same for people: `inputs.messages[0].content`. */
  path: string
  /** Whether it is the whole text there, so that the type of its value is kept. */
  whole: boolean
  reference: Reference | ReferenceFault
}

const alreadyFound = new WeakMap<object, FoundReference[]>()

/** Every reference in the texts of the inputs, which must not be changed afterwards: they are read once, and asked for often. */
export function referencesIn(inputs: unknown): readonly FoundReference[] {
  if (typeof inputs !== 'object' || inputs === null) return findReferences(inputs)
  const before = alreadyFound.get(inputs)
  if (before) return before
  const found = findReferences(inputs)
  alreadyFound.set(inputs, found)
  return found
}

function findReferences(inputs: unknown): FoundReference[] {
  const found: FoundReference[] = []
  visit(inputs, [], found)
  return found
}

/** `at` is where the value stands, and the same afterwards. */
function visit(value: unknown, at: Segment[], found: FoundReference[]): void {
  if (typeof value === 'string') {
    if (value.includes('${')) for (const one of referencesOf(value, [...at])) found.push(one)
  } else if (Array.isArray(value))
    for (let index = 0; index < value.length; index++) {
      at.push(index)
      visit(value[index], at, found)
      at.pop()
    }
  else if (value !== null && typeof value === 'object')
    for (const key of Object.keys(value)) {
      at.push(key)
      visit((value as Record<string, unknown>)[key], at, found)
      at.pop()
    }
}

/** Those of one text, each once however often it stands there, or the first fault in it. */
function referencesOf(text: string, at: readonly Segment[]): FoundReference[] {
  const path = placeOf(['inputs', ...at])
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
