import type { Graph } from '../../../models/comfyui/graph.ts'

/** Assumed steps of a sampler that does not name them. */
const usualSteps = 20
const samples = /sampler/i

/** How much of a node is done. */
interface NodeProgress {
  value: number
  max: number
}

/**
 * Computes how much of a graph is done from the messages of ComfyUI. A node that samples counts as its number of steps,
 * every other node as one step, because sampling takes nearly all of the time.
 */
export class GraphProgress {
  #weights: Map<string, number>
  #done = new Map<string, number>()
  /** The node that `executing` named last: the one before it is finished. */
  #current: string | undefined

  constructor(graph: Graph) {
    this.#weights = new Map(
      Object.entries(graph).map(([id, { class_type, inputs }]) => {
        const steps = typeof inputs.steps === 'number' && inputs.steps >= 1 ? Math.min(inputs.steps, 1_000) : usualSteps
        return [id, samples.test(class_type) ? steps : 1]
      }),
    )
  }

  /** These nodes need not run: their results are cached. */
  cached(nodes: readonly string[]): void {
    for (const node of nodes) this.#set(node, 1)
  }

  /** Records that this node runs now; null after the last one. */
  executing(node: string | null): void {
    if (this.#current !== undefined && this.#current !== node) this.#set(this.#current, 1)
    this.#current = node ?? undefined
  }

  /** Records the progress of one node. */
  node(id: string, { value, max }: NodeProgress): void {
    if (max > 0) this.#set(id, Math.min(1, Math.max(0, value / max)))
  }

  /** 0 to 1. */
  get fraction(): number {
    let all = 0
    let done = 0
    for (const [id, weight] of this.#weights) {
      all += weight
      done += weight * (this.#done.get(id) ?? 0)
    }
    return all === 0 ? 0 : done / all
  }

  /** Nodes of subgraphs have ids of their own, which are not in the graph. */
  #set(id: string, part: number): void {
    if (this.#weights.has(id)) this.#done.set(id, Math.max(part, this.#done.get(id) ?? 0))
  }
}
