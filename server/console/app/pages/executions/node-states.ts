import { createContext, useContext, useSyncExternalStore } from 'react'
import type { Schema } from '../../api/schema.ts'

type ExecutionNode = Schema<'ExecutionNode'>

/** The nodes of an execution by id, beside the graph: a card reads its own, so an update draws only what changed. */
export function openNodeStates() {
  const listeners = new Set<() => void>()
  let nodes: ReadonlyMap<string, ExecutionNode> = new Map()
  return {
    get: (id: string): ExecutionNode | undefined => nodes.get(id),
    set(next: readonly ExecutionNode[]): void {
      nodes = new Map(next.map(node => [node.node_id, node]))
      for (const listener of listeners) listener()
    },
    watch: (listener: () => void): (() => void) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
type NodeStates = ReturnType<typeof openNodeStates>

export const NodeStatesContext = createContext<NodeStates>(openNodeStates())

/** The node with this id, as it is now. */
export function useNodeState(id: string): ExecutionNode | undefined {
  const states = useContext(NodeStatesContext)
  return useSyncExternalStore(states.watch, () => states.get(id))
}
