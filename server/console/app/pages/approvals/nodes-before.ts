import type { GraphLine } from '../../components/graph/layout.ts'

/** Returns the ids of the nodes before one, those nearest to it first. */
export function nodesBefore(edges: readonly GraphLine[], node: string): string[] {
  const found = new Set([node])
  // The set grows while it is read.
  for (const id of found) for (const { from, to } of edges) if (to === id) found.add(from)
  return [...found].slice(1)
}
