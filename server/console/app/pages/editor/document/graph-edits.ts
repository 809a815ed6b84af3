import { addEdge, connect, disconnect, type Edit, parameterReference, removeEdge, together } from './edits.ts'
import { type GraphEdge, parametersId } from './graph.ts'
import { inputOfHandle, orderHandles, outputOfHandle } from './ports.ts'
import { outputReference } from './references.ts'

/** The edit that a drag from port to port means; undefined if it means nothing. */
export function editOfConnection(
  source: string,
  sourceHandle: string | null,
  target: string,
  targetHandle: string | null,
): Edit | undefined {
  if (sourceHandle === null || targetHandle === null) return undefined
  if (targetHandle === orderHandles.after || sourceHandle === orderHandles.before)
    return source === parametersId ? undefined : addEdge(source, target)
  const output = outputOfHandle(sourceHandle)
  return connect(
    target,
    inputOfHandle(targetHandle),
    source === parametersId ? parameterReference(output) : outputReference(source, output),
  )
}

/** The edit that removing an edge means. */
export function editOfCut({ from, to, link }: GraphEdge): Edit {
  if (!link) return removeEdge(from, to)
  return together(disconnect(to, link.input, link.source), removeEdge(from, to))
}
