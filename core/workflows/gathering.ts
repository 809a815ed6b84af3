import { setImmediate as nextTurn } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { NodeJob } from '../store/execution-items.ts'
import { jobErrorOf, type Store } from '../store/store.ts'
import type { NodeResult } from '../store/workflows.ts'
import type { DefinitionSnapshots } from './definition-snapshots.ts'
import { maxNodeResultBytes } from './node-bindings.ts'

/** How much of a result is copied in one turn of the event loop, bytes. */
const copiedAtOnce = 1 << 20
/** How long to wait after the store has failed, milliseconds. */
const retryMs = 1_000

/**
 * Gathers the results of items into the results of their nodes, one node at a time, so that only one result is in memory.
 * Nodes whose items had all ended before the start are gathered first.
 */
export function openGathering(options: {
  store: Pick<Store['executions'], 'gathers' | 'itemResults' | 'resolve'>
  snapshots: Pick<DefinitionSnapshots, 'keepResult'>
  /** Called when the items of a node have ended. */
  ended: (executionId: string, nodeId: string) => void
  log: Log
}) {
  const { store, snapshots, ended, log } = options
  const closed = new AbortController()
  let last: Promise<void> = store
    .gathers()
    .then(gatherAll)
    .catch((thrown: unknown) => {
      if (!Failure.from(thrown).retryable) log.error('Results of items could not be looked up', {}, thrown)
    })

  async function gatherAll(nodes: readonly NodeJob[]): Promise<void> {
    for (const node of nodes) if (!closed.signal.aborted) await gather(node)
  }

  async function gather(job: NodeJob): Promise<void> {
    const { organizationId, id, executionId, nodeId } = job
    ended(executionId, nodeId)
    try {
      const result = await read(job)
      if (result instanceof Failure) {
        const error = jobErrorOf(result, 0)
        return void (await store.resolve(organizationId, id, { awaits: 'items', at: Date.now(), error }))
      }
      const resolved = await store.resolve(organizationId, id, { awaits: 'items', at: Date.now(), result })
      if (resolved && result.byteLength <= keptBytes) snapshots.keepResult(executionId, nodeId, textOf(result))
    } catch (thrown) {
      const failure = Failure.from(thrown)
      if (failure.code === 'shutting_down') return
      log[failure.retryable ? 'warn' : 'error'](
        'The results of the items of a node could not be gathered',
        { job: id },
        thrown,
      )
      // The rows have everything, so nothing is lost.
      setTimeout(() => void add([job]), retryMs).unref()
    }
  }

  /** The results as JSON in UTF-8: nothing is parsed. A failure if they are too large together. */
  async function read({ organizationId, executionId, nodeId }: NodeJob): Promise<Buffer | Failure> {
    const parts: Buffer[] = []
    let bytes = 2
    for (let item = 0; ; ) {
      const results = await store.itemResults(organizationId, executionId, { nodeId, item })
      if (results.length === 0) break
      item += results.length
      for (const result of results) {
        bytes += 1 + sizeOf(result)
        if (bytes > maxNodeResultBytes) return tooLarge(nodeId)
        parts.push(
          typeof result === 'object' && result !== null
            ? Buffer.from(await result.text())
            : Buffer.from(result ?? 'null'),
        )
      }
      await nextTurn()
    }
    return joined(parts, bytes - (parts.length > 0 ? 1 : 0))
  }

  function add(nodes: readonly NodeJob[]): Promise<void> {
    last = last.then(() => gatherAll(nodes))
    return last
  }

  return {
    /** Gathers the results of these nodes, whose items have all ended. */
    add: (nodes: readonly NodeJob[]): void => void add(nodes),
    /** Waits for the node that is being gathered; the others are gathered after the next start. */
    close(): Promise<void> {
      closed.abort()
      return last
    },
  }
}

/** Longer results are read from the store when they are needed, bytes. */
const keptBytes = 1 << 16

const sizeOf = (result: NodeResult['result']): number =>
  result === null ? 4 : typeof result === 'string' ? Buffer.byteLength(result) : result.bytes

const textOf = (bytes: Buffer): string => bytes.toString('utf8')

const tooLarge = (nodeId: string) =>
  new Failure(
    'payload_too_large',
    `The results of the items of node '${nodeId}' are larger than 16 MiB together. Make fewer or smaller results, or split the list over several nodes.`,
  )

/** The parts as a JSON list of this length in bytes. */
async function joined(parts: readonly Buffer[], bytes: number): Promise<Buffer> {
  const whole = Buffer.allocUnsafe(bytes)
  let at = whole.write('[')
  let copied = 0
  for (const [index, part] of parts.entries()) {
    if (index > 0) at += whole.write(',', at)
    at += part.copy(whole, at)
    if ((copied += part.byteLength) < copiedAtOnce) continue
    copied = 0
    await nextTurn()
  }
  whole.write(']', at)
  return whole
}
