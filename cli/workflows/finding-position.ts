import type { Diagnostic } from '../../core/workflows/diagnostics.ts'
import { type PositionOf, pathParts, type WorkflowDocument } from './document.ts'

/** Returns where in the file a finding is: line and column, counted from 1. */
export function positionOfFinding(
  { node_id: node, path, edge, nodes }: Diagnostic,
  { dag }: Pick<WorkflowDocument, 'dag'>,
  positionOf: PositionOf,
): { line: number; column: number } | undefined {
  const owner = node ?? nodes?.[0]
  if (owner !== undefined) return positionOf(['dag', 'nodes', owner, ...pathParts(path ?? '')])
  if (path !== undefined) return positionOf(pathParts(path))
  const at = edge ? dag.edges.findLastIndex(({ from, to }) => from === edge.from && to === edge.to) : -1
  return positionOf(at < 0 ? ['dag'] : ['dag', 'edges', at])
}

/** Names the places of findings in a file: `story.yaml:12:9`. */
export const positionsIn =
  (path: string, document: Pick<WorkflowDocument, 'dag'>, positionOf: PositionOf) =>
  (found: Diagnostic): string => {
    const position = positionOfFinding(found, document, positionOf)
    return position ? `${path}:${position.line}:${position.column}` : path
  }
