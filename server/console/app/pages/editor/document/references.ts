import {
  isOfResult,
  pathText,
  type Reference,
  ReferenceFault,
  referenceText,
  templateParts,
} from '../../../../../../core/workflows/references.ts'
import type { Path, Workflow } from './workflow-document.ts'

/** The valid references of a text and their positions. */
const partsOf = (text: string): { start: number; end: number; reference: Reference }[] =>
  [...templateParts(text)].flatMap(({ start, end, content }) =>
    typeof content === 'string' || content instanceof ReferenceFault ? [] : [{ start, end, reference: content }],
  )

/** The valid references of a text in their order. */
export const referencesOfText = (text: string): Reference[] => partsOf(text).map(({ reference }) => reference)

/** Whether the whole text is one reference, whose value then keeps its type. */
export function isReference(value: unknown): boolean {
  if (typeof value !== 'string') return false
  const [first] = partsOf(value)
  return first?.start === 0 && first.end === value.length
}

/** `choices[0].message.content`, as in `outputs` of a node. */
export const outputText = (path: Path): string => pathText(path).replace(/^\./, '')

/** The steps of a path as in `outputs` of a node, which may begin with `result.`; undefined if it is none. */
export function outputSteps(output: string): Path | undefined {
  const [reference] = referencesOfText(`\${nodes${output.startsWith('[') ? '' : '.'}${output}}`)
  if (!reference) return undefined
  const { path } = reference
  return path[0] === 'result' && path.length > 1 ? path.slice(1) : path
}

/** A reference to an output of a node. The output is a path as in `outputs`. */
export const outputReference = (id: string, output: string): string =>
  `\${nodes${pathText([id])}.result${output === '' || output.startsWith('[') ? '' : '.'}${output}}`

/** Replaces the reference that a name in `defaults` stands for, which may be written with or without its braces. */
export function replaceInDefault(name: string, replace: Parameters<typeof replaceReferences>[1]): string {
  if (name.includes('${')) return replaceReferences(name, replace)
  return replaceReferences(`\${${name}}`, replace).slice(2, -1)
}

/** Replaces references in a text. `replace` returns the new path, null for one to be removed, undefined for no change. */
export function replaceReferences(
  text: string,
  replace: (reference: Reference) => Pick<Reference, 'root' | 'path'> | null | undefined,
): string {
  let replaced = ''
  let from = 0
  for (const { start, end, reference } of partsOf(text)) {
    const next = replace(reference)
    if (next === undefined) continue
    replaced += text.slice(from, start) + (next === null ? '' : referenceText(next.root, next.path))
    from = end
  }
  return replaced + text.slice(from)
}

/** Calls `visit` for each text in a value, with its path. */
export function visitTexts(value: unknown, visit: (text: string, path: Path) => void, path: Path = []): void {
  if (typeof value === 'string') visit(value, path)
  else if (Array.isArray(value)) for (const [at, part] of value.entries()) visitTexts(part, visit, [...path, at])
  else if (value !== null && typeof value === 'object')
    for (const [name, part] of Object.entries(value)) visitTexts(part, visit, [...path, name])
}

/** What a node takes from a parameter or from another node. */
export interface TakenValue {
  /** Id of the node that gives it; undefined: a parameter. */
  from: string | undefined
  /** The path in its result, or the name of the parameter. */
  output: string
  to: string
  source: string
}
/** The same as the value of an input. */
export interface ValueLink extends TakenValue {
  /** The path in the inputs of the node. */
  input: Path
}

/** Calls `found` for all that a part of a node takes, with the place in it. */
function visitTaken(part: unknown, to: string, found: (taken: TakenValue, at: Path) => void): void {
  visitTexts(part, (text, at) => {
    for (const { root, path, source } of referencesOfText(text)) {
      const [first, second, ...rest] = path
      if (root === 'input') found({ from: undefined, output: String(first), to, source }, at)
      else if (root === 'nodes') {
        const output = isOfResult(path) ? outputText(rest) : String(second ?? '')
        found({ from: String(first), output, to, source }, at)
      }
    }
  })
}

/** All links of a workflow, in the order of its nodes. */
export function valueLinksOf({ nodes }: Pick<Workflow, 'nodes'>): ValueLink[] {
  const links: ValueLink[] = []
  for (const { id, inputs } of nodes) visitTaken(inputs, id, (taken, input) => links.push({ ...taken, input }))
  return links
}

/** What nodes take as the list for whose items they run. */
export function listLinksOf({ nodes }: Pick<Workflow, 'nodes'>): TakenValue[] {
  const links: TakenValue[] = []
  for (const { id, for_each } of nodes) visitTaken(for_each, id, taken => links.push(taken))
  return links
}

/** What the conditions of nodes ask about. */
function conditionLinksOf({ nodes }: Pick<Workflow, 'nodes'>): TakenValue[] {
  const links: TakenValue[] = []
  for (const { id, when } of nodes) visitTaken(when, id, taken => links.push(taken))
  return links
}

/** Everything that nodes take: as inputs, as lists and in conditions. */
export const takenValuesOf = (workflow: Pick<Workflow, 'nodes'>): TakenValue[] => [
  ...listLinksOf(workflow),
  ...valueLinksOf(workflow),
  ...conditionLinksOf(workflow),
]

/** The names of the parameters among them. */
export const parametersOfTaken = (taken: readonly TakenValue[]): Set<string> =>
  new Set(taken.flatMap(({ from, output }) => (from === undefined ? [output] : [])))

/** The order that the conditions of nodes imply: each comes after the nodes that its condition asks about. */
export const conditionEdgesOf = (workflow: Pick<Workflow, 'nodes'>): { from: string; to: string }[] =>
  conditionLinksOf(workflow).flatMap(({ from, to }) => (from === undefined ? [] : [{ from, to }]))

type Graph = Pick<Workflow, 'nodes' | 'edges'>
type Step = { from: string | undefined; to: string }
/** The edges and references of a workflow by the node that they lead to, and by the node that they come from. */
const known = new WeakMap<Graph, Record<'to' | 'from', Map<string | undefined, Step[]>>>()

/** Reads the order of a workflow once, because it may be asked for each of hundreds of nodes. */
function stepsOf(workflow: Graph) {
  let found = known.get(workflow)
  if (found) return found
  const all = [...workflow.edges, ...takenValuesOf(workflow)]
  const steps: Step[] = all.filter(({ from }) => from !== undefined)
  found = { to: Map.groupBy(steps, ({ to }) => to), from: Map.groupBy(steps, ({ from }) => from) }
  known.set(workflow, found)
  return found
}

/** Ids of the nodes that are reached from one, however far: against the edges and references, or along them. */
function reached(workflow: Graph, id: string, along: boolean): Set<string> {
  const steps = stepsOf(workflow)[along ? 'from' : 'to']
  const found = new Set<string>()
  const open = [id]
  for (let next = open.pop(); next !== undefined; next = open.pop())
    for (const { from, to } of steps.get(next) ?? []) {
      const one = along ? to : from!
      if (found.has(one)) continue
      found.add(one)
      open.push(one)
    }
  return found
}

/** Ids of the nodes that run before a node: over edges and references, however far. */
export const upstreamOf = (workflow: Graph, id: string): Set<string> => reached(workflow, id, false)

/** Ids of the nodes that run after it. */
export const downstreamOf = (workflow: Graph, id: string): Set<string> => reached(workflow, id, true)
