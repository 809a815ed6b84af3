import { listName } from './items.ts'
import { kindOfOutput, type PortKind, type Taken, takenBy } from './port-kinds.ts'
import { portNames } from './port-names.ts'
import { isReference, outputSteps, outputText, type TakenValue } from './references.ts'
import type { NodeResult } from './results.ts'
import { type InputPort, inputPorts, type OutputField, type TaskFacts } from './schema.ts'
import type { Path, WorkflowNode } from './workflow-document.ts'

interface OutputPort {
  /** `choices[0].message.content` */
  path: string
  /** What people call it: `Answer`. */
  name: string
  carries: PortKind
  /** In the tree of all outputs: the last part of the path, and how many stand above it. */
  branch?: { label: string; depth: number }
}
/** An output before it has a name. */
type FoundOutput = Pick<OutputPort, 'path' | 'branch'> & { kind: string }
/** What a node takes as an input, or without one as its list. */
export type NodeLink = TakenValue & { input?: Path }
interface CardInput extends InputPort {
  name: string
  taken: Taken
  /** It has words already, to which a value is appended. */
  isText: boolean
}
export interface Ports {
  /** The name of the list for whose items the node runs. */
  list?: string
  inputs: CardInput[]
  outputs: OutputPort[]
}

/**
 * The ports that a node shows: its required and filled inputs, its main output, and whatever a reference or `outputs`
 * names. `all` adds the other inputs, or the whole result as a tree.
 */
export function portsOf(
  node: WorkflowNode,
  task: TaskFacts | undefined,
  { tree, main }: NodeResult,
  links: readonly NodeLink[],
  all: { inputs: boolean; outputs: boolean },
): Ports {
  const inputs = task
    ? inputPorts(task.input_schema, node.inputs, task.media_fields, all.inputs)
    : Object.keys(node.inputs).map(name => ({ path: [name], required: false }))
  const known = new Set(inputs.map(({ path }) => inputHandle(path)))
  for (const { to, input } of links)
    if (input && to === node.id && !known.has(inputHandle(input))) {
      known.add(inputHandle(input))
      inputs.push({ path: input, required: false })
    }
  const inputNames = portNames(inputs.map(({ path }) => path))
  const isList = node.for_each !== undefined
  const outputs = new Map<string, FoundOutput>()
  const add = (port: FoundOutput) => void (outputs.has(port.path) || outputs.set(port.path, port))
  const branches = all.outputs ? branchesOf(tree, 0) : []
  // What it gives is known only when it runs.
  if (task && tree.length === 0) add({ path: '', kind: 'any' })
  if (main && !all.outputs) add({ path: outputText(main.path), kind: main.kind })
  const named = [...node.outputs, ...links.filter(({ from }) => from === node.id).map(({ output }) => output)]
  for (const path of named)
    if (!branches.some(branch => branch.path === path))
      add({ path, kind: path === '' && isList ? 'list' : kindAt(tree, path) })
  for (const branch of branches) add(branch)
  const shown = [...outputs.values()].map(port => ({ port, steps: outputSteps(port.path) ?? [port.path] }))
  const outputNames = portNames(shown.map(({ port, steps }) => (port.path === '' ? [] : steps)))
  return {
    ...(isList ? { list: listName(node.for_each) } : {}),
    inputs: inputs.map((port, at) => ({
      ...port,
      name: inputNames[at]!,
      taken: takenBy(task, port.path),
      isText: hasWords(node.inputs, port.path),
    })),
    outputs: shown.map(({ port: { kind, ...port }, steps }, at) => ({
      ...port,
      name: outputNames[at]!,
      carries: kindOfOutput(node.task, steps, kind),
    })),
  }
}

/** Whether an input has words, and not only a reference. */
function hasWords(inputs: Record<string, unknown>, path: Path): boolean {
  const value = path.reduce<unknown>(
    (now, step) => (now as Record<string | number, unknown> | undefined)?.[step],
    inputs,
  )
  return typeof value === 'string' && value.trim() !== '' && !isReference(value)
}

/** The kind of the value at a path of a result; any, where it is not known. */
function kindAt(tree: readonly OutputField[], path: string): string {
  for (const field of tree) {
    const here = outputText(field.path)
    if (here === path) return field.kind
    if (path.startsWith(here) && field.children.length > 0) {
      const found = kindAt(field.children, path)
      if (found !== 'any') return found
    }
  }
  return 'any'
}

const branchesOf = (outputs: readonly OutputField[], depth: number): FoundOutput[] =>
  outputs.flatMap(({ path, kind, label, children }) => [
    { path: outputText(path), kind, branch: { label, depth } },
    ...branchesOf(children, depth + 1),
  ])

// The graph library puts the ids of ports into selectors, so they hold no quotes.
export const inputHandle = (path: Path): string => `in:${encodeURIComponent(JSON.stringify(path))}`
export const outputHandle = (path: string): string => `out:${encodeURIComponent(path)}`
export const inputOfHandle = (handle: string): Path =>
  JSON.parse(decodeURIComponent(handle.slice('in:'.length))) as Path
export const outputOfHandle = (handle: string): string => decodeURIComponent(handle.slice('out:'.length))
/** The port of the list for whose items a node runs. */
export const listHandle = 'list'
/** Ports that order nodes without passing a value. */
export const orderHandles = { after: 'after', before: 'before' } as const

/** The id of a card for the graph library, which puts it into a selector. People may type any id in the YAML. */
export const cardKey = (id: string): string =>
  id.replace(/[%"\\\p{Cc}]/gu, sign => `%${sign.charCodeAt(0).toString(16).padStart(2, '0')}`)
export const idOfCard = (key: string): string =>
  key.replace(/%([0-9a-f]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
