import { jsonOf, listOf, objectOf } from '../../../json.ts'
import type { Graph } from '../../../models/comfyui/graph.ts'

/** What one message of ComfyUI means for the job. */
export interface PromptEvent {
  /** How much of the graph is done, 0 to 1. */
  fraction?: number
  /** An unfinished image. */
  preview?: Buffer
  /** The prompt has ended: the history has its result, or will have it in a moment. */
  ended?: true
}

/** Event types of binary messages. Source: protocol.py of ComfyUI 0.33. */
const previewImage = 1
const previewWithMetadata = 4
/** A prompt that ends before its id is known sends few messages. */
const maxEarly = 256

type Data = Record<string, unknown>

const numberOf = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0)

/**
 * Reads the messages of a WebSocket of ComfyUI. Messages about other prompts, unknown ones and broken ones mean nothing:
 * the history decides how the prompt has ended, not these.
 */
export class PromptEvents {
  #progress: GraphProgress
  #promptId: string | undefined
  /** Messages that came before the id of the prompt was known. */
  #early: string[] = []

  constructor(graph: Graph) {
    this.#progress = new GraphProgress(graph)
  }

  get fraction(): number {
    return this.#progress.fraction
  }

  /** Sets the id of the prompt, and returns what the messages until now mean for it. */
  begin(promptId: string): PromptEvent {
    this.#promptId = promptId
    return Object.assign({}, ...this.#early.splice(0).map(message => this.read(message))) as PromptEvent
  }

  read(message: string | Buffer): PromptEvent {
    if (typeof message !== 'string') return previewIn(message)
    if (this.#promptId === undefined) {
      if (this.#early.length < maxEarly) this.#early.push(message)
      return {}
    }
    const { type, data } = objectOf(jsonOf(message))
    const event = objectOf(data)
    // Answers to a client that connects again lack the id; they are sent only while its own prompt runs.
    if (event.prompt_id !== undefined && event.prompt_id !== this.#promptId) return {}
    return this.#readEvent(type, event)
  }

  #readEvent(type: unknown, event: Data): PromptEvent {
    const progress = this.#progress
    switch (type) {
      case 'execution_cached':
        progress.cached(listOf(event.nodes).map(String))
        break
      case 'executing':
        progress.executing(typeof event.node === 'string' ? event.node : null)
        if (event.node === null && event.prompt_id !== undefined) return { fraction: progress.fraction, ended: true }
        break
      case 'executed':
        progress.cached([String(event.node)])
        break
      case 'progress':
        progress.node(String(event.node), { value: numberOf(event.value), max: numberOf(event.max) })
        break
      case 'progress_state':
        for (const [id, state] of Object.entries(objectOf(event.nodes))) {
          const { value, max } = objectOf(state)
          progress.node(id, { value: numberOf(value), max: numberOf(max) })
        }
        break
      case 'execution_success':
      case 'execution_error':
      case 'execution_interrupted':
        return { ended: true }
      default:
        return {}
    }
    return { fraction: progress.fraction }
  }
}

/** Binary messages are sent only to the client whose prompt runs. */
function previewIn(message: Buffer): PromptEvent {
  if (message.length < 8) return {}
  const type = message.readUInt32BE(0)
  const offset = type === previewImage ? 8 : type === previewWithMetadata ? 8 + message.readUInt32BE(4) : undefined
  return offset === undefined || offset >= message.length ? {} : { preview: message.subarray(offset) }
}

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
class GraphProgress {
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
