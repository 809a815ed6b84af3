/**
 * A reference in the inputs of a node: `${input.topic}`, `${nodes.write.result.choices[0].message.content}`,
 * `${execution.id}`; in the inputs of a node with `for_each` also `${item.name}` and `${index}`. A reference is data
 * access, never code: own members only, no expressions. `$${` is a literal `${`.
 * Source of the grammar: the API contract, 2.1. This file imports nothing, because the console bundles it.
 */
export interface Reference {
  /** The text between the braces, without surrounding spaces. */
  source: string
  root: (typeof roots)[number]
  /** What follows the root: member names, numbers for list positions, and `everyItem`. */
  path: readonly ReferenceStep[]
}
export type ReferenceStep = string | number

/** The step `[*]`: what follows it is read from every item of a list, and the values are a list. No list has this position. */
export const everyItem = -1

/** Literal text and references, in order. */
export type Template = readonly (string | Reference)[]

const roots = ['input', 'nodes', 'execution', 'item', 'index'] as const
/** Roots that are values themselves: a reference may end with them. */
const ownValues: ReadonlySet<unknown> = new Set<(typeof roots)[number]>(['item', 'index'])
const maxReferenceLength = 512
const maxSegments = 32
/** Per text: four times as many as a workflow has nodes. */
const maxReferences = 2_000

/** A reference with wrong syntax or an unknown root. The message names it and the reason. */
export class ReferenceFault extends Error {
  override readonly name = 'ReferenceFault'
  /** The code of its diagnostic. */
  readonly code: 'unknown_reference' | 'invalid_reference_syntax'

  constructor(message: string, code: ReferenceFault['code'] = 'invalid_reference_syntax') {
    super(message)
    this.code = code
  }
}

const fault = (source: string, why: string, code?: ReferenceFault['code']): ReferenceFault =>
  new ReferenceFault(`\${${source.length > 80 ? `${source.slice(0, 80)}…` : source}}: ${why}`, code)

/** A part of a text that is not plain: a reference, its fault, or for `$${` the text `${`. `end` is exclusive. */
export interface TemplatePart {
  start: number
  end: number
  content: Reference | ReferenceFault | string
}

/**
 * Finds the references and escapes of a text in order. After a fault it goes on, so that an editor can show the valid
 * references of an unfinished text. Linear in the length of any text: each `${` is read for at most 512 characters, and
 * the 2,001st ends the search with a fault.
 */
export function* templateParts(text: string): Generator<TemplatePart, void> {
  let end = 0
  let references = 0
  for (let start = text.indexOf('${'); start >= 0; start = text.indexOf('${', end)) {
    if (text[start - 1] === '$' && start - 1 >= end) {
      end = start + 2
      yield { start: start - 1, end, content: '${' }
      continue
    }
    references++
    let content: TemplatePart['content']
    end = start + 2
    try {
      const close = closingBrace(text, end)
      const source = text.slice(end, close).trim()
      end = close + 1
      if (references > maxReferences)
        throw fault(source, `a text holds at most ${maxReferences} references, and this is one more.`)
      content = parseReference(source)
    } catch (thrown) {
      if (!(thrown instanceof ReferenceFault)) throw thrown
      content = thrown
      if (references > maxReferences) return yield { start, end, content }
    }
    yield { start, end, content }
  }
}

/** Splits a text into literal text and references. Throws the first ReferenceFault. */
export function parseTemplate(text: string): Template {
  const parts: (string | Reference)[] = []
  let literal = ''
  let from = 0
  for (const { start, end, content } of templateParts(text)) {
    literal += text.slice(from, start)
    from = end
    if (content instanceof ReferenceFault) throw content
    if (typeof content === 'string') literal += content
    else {
      if (literal !== '') parts.push(literal)
      literal = ''
      parts.push(content)
    }
  }
  literal += text.slice(from)
  if (literal !== '') parts.push(literal)
  return parts
}

/** The index of the closing brace; braces inside quotes do not count. */
function closingBrace(text: string, from: number): number {
  const last = Math.min(text.length, from + maxReferenceLength)
  let quote = ''
  for (let at = from; at < last; at++) {
    const character = text[at]!
    if (quote !== '') {
      if (character === '\\') at++
      else if (character === quote) quote = ''
    } else if (character === '"' || character === "'") quote = character
    else if (character === '}') return at
  }
  const start = text.slice(from, from + 40)
  throw fault(
    start,
    last < text.length ? `it is longer than ${maxReferenceLength} characters.` : "its closing '}' is missing.",
  )
}

const name = /[A-Za-z_$][A-Za-z0-9_$-]*|[0-9]+/y
const index = /\[([0-9]{1,9}|\*)\]/y
const quoted = /\[(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\]/y

/** A cache of parsed references by source, because many nodes use the same ones. */
const cached = new Map<string, Reference>()
const maxCached = 512

/** Parses the text between the braces. Throws ReferenceFault. */
export function parseReference(source: string): Reference {
  const before = cached.get(source)
  if (before) return before
  const reference = readReference(source)
  if (cached.size >= maxCached) cached.clear()
  cached.set(source, reference)
  return reference
}

function readReference(source: string): Reference {
  if (source === '') throw fault(source, 'it names nothing. Write ${input.name} or ${nodes.id.result.…}.')
  const path: ReferenceStep[] = []
  let at = 0
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const found = pattern.exec(source)
    if (found) at += found[0].length
    return found
  }
  const wrong = () => fault(source, `'${source[at] ?? 'its end'}' cannot stand at character ${at + 1}.`)
  const member = (): void => {
    const found = match(name)
    if (!found) throw wrong()
    path.push(/^[0-9]/.test(found[0]) ? Number(found[0]) : found[0])
  }
  member()
  while (at < source.length) {
    if (path.length > maxSegments) throw fault(source, `it goes more than ${maxSegments} steps deep.`)
    if (source[at] === '.') {
      at++
      member()
      continue
    }
    const place = match(index)
    const text = place ? null : match(quoted)
    if (place) path.push(place[1] === '*' ? everyItem : Number(place[1]))
    else if (text) path.push((text[1] ?? text[2] ?? '').replace(/\\(.)/g, '$1'))
    else throw wrong()
  }
  const [root, ...rest] = path
  if (!roots.includes(root as Reference['root']))
    throw fault(
      source,
      `it begins with '${root}', and references begin with 'input', 'nodes', 'execution', 'item' or 'index'.`,
      'unknown_reference',
    )
  if (rest.length === 0 && !ownValues.has(root)) throw fault(source, `it names no member of '${root}'.`)
  if (rest.length > 0 && root === 'index') throw fault(source, "'index' is a number, so it has no members.")
  return { source, root: root as Reference['root'], path: rest }
}

/** The text of a path, such as `.choices[0]["a name"]`, as parseReference reads it after a root. */
export const pathText = (path: readonly ReferenceStep[]): string =>
  path
    .map(step =>
      typeof step === 'number'
        ? `[${step === everyItem ? '*' : step}]`
        : /^[A-Za-z_$][A-Za-z0-9_$-]*$/.test(step)
          ? `.${step}`
          : `["${step.replace(/["\\]/g, '\\$&')}"]`,
    )
    .join('')

/** Whether a reference to a node, by its path, is to the node's result and not to how it has ended. */
export const isOfResult = ([, member]: readonly ReferenceStep[]): boolean => member === 'result' || member === 'outputs'

/** The text of a reference. */
export const referenceText = (root: Reference['root'], path: readonly ReferenceStep[]): string =>
  `\${${root}${pathText(path)}}`
