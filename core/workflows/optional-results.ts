import type { WorkflowNode } from '../dag/definition.ts'
import { referencesOfNode } from './bind.ts'
import { isOfResult, parseReference, type Reference, ReferenceFault, referenceText } from './references.ts'

/** The reference that a name in `defaults` stands for, which may be written with or without its braces. Or its fault. */
export function defaultReference(name: string): Reference | ReferenceFault {
  const braces = /^\s*\$\{(.*)\}\s*$/s.exec(name)
  try {
    return parseReference((braces?.[1] ?? name).trim())
  } catch (thrown) {
    if (thrown instanceof ReferenceFault) return thrown
    throw thrown
  }
}

/** The defaults of a node by the text of their references; without those that are no references. */
export function defaultsOf({ defaults = {} }: Pick<WorkflowNode, 'defaults'>): Map<string, unknown> {
  const found = new Map<string, unknown>()
  for (const [name, value] of Object.entries(defaults)) {
    const reference = defaultReference(name)
    if (!(reference instanceof ReferenceFault)) found.set(referenceText(reference.root, reference.path), value)
  }
  return found
}

/**
 * Returns the nodes without which the node can run if they are skipped: it refers to each of them, and has a default for
 * every reference to its result.
 */
export function optionalNodes(node: WorkflowNode): Set<string> {
  const defaults = defaultsOf(node)
  const optional = new Set<string>()
  const needed = new Set<string>()
  for (const { reference } of referencesOfNode(node)) {
    if (!('root' in reference) || reference.root !== 'nodes') continue
    const { root, path } = reference
    const isNeeded = isOfResult(path) && !defaults.has(referenceText(root, path))
    ;(isNeeded ? needed : optional).add(String(path[0]))
  }
  return new Set([...optional].filter(id => !needed.has(id)))
}
