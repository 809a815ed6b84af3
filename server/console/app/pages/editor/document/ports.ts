import { listName } from './items.ts'
import { outputText, type TakenValue } from './references.ts'
import type { NodeResult } from './results.ts'
import { type InputPort, inputPorts, type OutputField, type TaskFacts } from './schema.ts'
import type { Path, WorkflowNode } from './workflow-document.ts'

interface OutputPort {
  /** `choices[0].message.content` */
  path: string
  kind: string
  /** In the tree of all outputs: the last part of the path, and how many stand above it. */
  branch?: { label: string; depth: number }
}
/** What a node takes as an input, or without one as its list. */
export type NodeLink = TakenValue & { input?: Path }
export interface Ports {
  /** The name of the list for whose items the node runs. */
  list?: string
  inputs: InputPort[]
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
  const isList = node.for_each !== undefined
  const outputs = new Map<string, OutputPort>()
  const add = (port: OutputPort) => void (outputs.has(port.path) || outputs.set(port.path, port))
  const branches = all.outputs ? branchesOf(tree, 0) : []
  // What it gives is known only when it runs.
  if (task && tree.length === 0) add({ path: '', kind: '' })
  if (main && !all.outputs) add({ path: outputText(main.path), kind: main.kind })
  const named = [...node.outputs, ...links.filter(({ from }) => from === node.id).map(({ output }) => output)]
  for (const path of named) if (!branches.some(branch => branch.path === path)) add({ path, kind: '' })
  for (const branch of branches) add(branch)
  return { ...(isList ? { list: listName(node.for_each) } : {}), inputs, outputs: [...outputs.values()] }
}

const branchesOf = (outputs: readonly OutputField[], depth: number): OutputPort[] =>
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
