/**
 * References in the inputs of a node: `${input.topic}`, `${nodes.write.result.choices[0].message.content}`,
 * `${execution.id}`. A reference is access to data and never code: own members only, no expressions. `$${` is a `${`
 * that is meant as text. Source of the grammar: the API contract, 2.1.
 */
export interface Reference {
  /** As it was written, between the braces and without the spaces around it. */
  source: string
  root: (typeof roots)[number]
  /** What follows the root: names of members, and numbers for places in lists. */
  path: readonly Segment[]
}
export type Segment = string | number

/** Text that stays, and references that are replaced, in order. */
export type Template = readonly (string | Reference)[]

const roots = ['input', 'nodes', 'execution'] as const
const longestReference = 512
const maxSegments = 32
/** In one text: four times as many as a workflow has nodes. */
const maxReferences = 2_000

/** A reference that cannot be read. The message says which and why. */
export class ReferenceFault extends Error {
  override readonly name = 'ReferenceFault'
  /** The code of its diagnostic: it is written as references are, or it is not. */
  readonly code: 'unknown_reference' | 'invalid_reference_syntax'

  constructor(message: string, code: ReferenceFault['code'] = 'invalid_reference_syntax') {
    super(message)
    this.code = code
  }
}

const fault = (source: string, why: string, code?: ReferenceFault['code']): ReferenceFault =>
  new ReferenceFault(`\${${source.length > 80 ? `${source.slice(0, 80)}…` : source}}: ${why}`, code)

/**
 * Takes a text apart. Linear in its length, whatever it holds: each `${` is looked at for 512 characters at most, and
 * the first that is no reference ends the work, as do more than 2,000. Throws ReferenceFault.
 */
export function parseTemplate(text: string): Template {
  const parts: (string | Reference)[] = []
  let kept = ''
  let from = 0
  let references = 0
  for (let at = text.indexOf('${'); at >= 0; at = text.indexOf('${', from)) {
    if (text[at - 1] === '$' && at - 1 >= from) {
      kept += `${text.slice(from, at - 1)}\${`
      from = at + 2
      continue
    }
    kept += text.slice(from, at)
    const end = endOf(text, at + 2)
    if (++references > maxReferences)
      throw fault(text.slice(at + 2, end), `a text holds at most ${maxReferences} references, and this is one more.`)
    if (kept !== '') parts.push(kept)
    kept = ''
    parts.push(parseReference(text.slice(at + 2, end).trim()))
    from = end + 1
  }
  kept += text.slice(from)
  if (kept !== '') parts.push(kept)
  return parts
}

/** Where the closing brace is; one inside quotes closes nothing. */
function endOf(text: string, from: number): number {
  const last = Math.min(text.length, from + longestReference)
  const first = text.indexOf('}', from)
  if (first >= 0 && first < last && !/["']/.test(text.slice(from, first))) return first
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
  throw fault(start, last < text.length ? `it is longer than ${longestReference} characters.` : 'it is never closed.')
}

const name = /[A-Za-z_$][A-Za-z0-9_$-]*|[0-9]+/y
const index = /\[([0-9]{1,9})\]/y
const quoted = /\[(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\]/y

/** Many nodes refer to the same: what was read last, by how it is written. */
const cached = new Map<string, Reference>()
const maxCached = 512

/** Reads what stands between the braces. Throws ReferenceFault. */
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
  const path: Segment[] = []
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
    if (place) path.push(Number(place[1]))
    else if (text) path.push((text[1] ?? text[2] ?? '').replace(/\\(.)/g, '$1'))
    else throw wrong()
  }
  const [root, ...rest] = path
  if (!roots.includes(root as Reference['root']))
    throw fault(
      source,
      `it begins with '${root}', and references begin with 'input', 'nodes' or 'execution'.`,
      'unknown_reference',
    )
  if (rest.length === 0) throw fault(source, `say what of '${root}' is meant.`)
  return { source, root: root as Reference['root'], path: rest }
}
