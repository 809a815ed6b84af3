import { randomUUID } from 'node:crypto'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import { largeResultBytes } from '../store/store.ts'
import type { ExecutionRecord, ExecutionStore } from '../store/workflows.ts'
import { hasFiles, shownResult } from '../tasks/registry.ts'
import type { FileAt } from '../tasks/steps/run-workflow.ts'
import { maxNodeResultBytes } from './node-bindings.ts'
import { prune } from './prune.ts'
import type { ResultLookup } from './result-lookup.ts'

/** How many results are read at once. */
const batchSize = 16
/** About how many characters of results are parsed in one turn of the event loop. */
const parsedPerTurn = 1 << 16

/**
 * The outputs of a completed execution as the result of the node that has run it: JSON, with the places of files whose URLs
 * readers get (`StoredOutputs`). Large results are read in a thread. Throws Failure `payload_too_large`, and
 * `output_expired` for a result that is no longer kept.
 */
export async function outputsOf(
  { id, organizationId, definition }: Pick<ExecutionRecord, 'id' | 'organizationId' | 'definition'>,
  store: Pick<ExecutionStore, 'nodes' | 'results'>,
  cpu: Pick<ResultLookup, 'pruned'>,
): Promise<Uint8Array> {
  const nodes = (await store.nodes(organizationId, id)).filter(({ status }) => status === 'completed')
  const parts: Uint8Array[] = []
  const files: FileAt[] = []
  let bytes = 2
  let parsed = 0
  function add(text: string | Uint8Array): void {
    const part = Buffer.from(text)
    if ((bytes += part.byteLength) > maxNodeResultBytes) throw tooLarge(id, 'more than 16 MiB')
    parts.push(part)
  }
  for (let from = 0; from < nodes.length; from += batchSize) {
    const batch = nodes.slice(from, from + batchSize)
    const results = await store.results(
      organizationId,
      id,
      batch.map(({ nodeId }) => nodeId),
    )
    for (const { nodeId, task } of batch) {
      const outputs = definition.dag.nodes[nodeId]?.outputs ?? []
      const result = results[nodeId]?.result ?? null
      add(`${parts.length === 0 ? '' : ','}${JSON.stringify(nodeId)}:`)
      if (typeof result === 'object' && result !== null && !hasFiles(task)) {
        const kept = await cpu.pruned(result, outputs, 'kept')
        add(kept)
      } else {
        const text = result === null || typeof result === 'string' ? result : await result.text()
        // Reading results that the database holds needs no turn of the event loop.
        if ((parsed += text?.length ?? 0) > parsedPerTurn) {
          parsed = 0
          await nextIteration()
        }
        const found = keptParts(task, text === null ? null : JSON.parse(text), outputs)
        add(JSON.stringify(found.kept))
        files.push(...found.files.map(({ at, ...file }) => ({ at: [nodeId, ...at], ...file })))
      }
    }
  }
  const json = Buffer.concat([Buffer.from('{'), ...parts, Buffer.from('}')])
  if (files.length === 0) return json
  const linked = Buffer.concat([Buffer.from('{"outputs":'), json, Buffer.from(`,"files":${JSON.stringify(files)}}`)])
  // Readers get URLs within it, so it is parsed for each of them.
  if (linked.byteLength > largeResultBytes) throw tooLarge(id, 'files and more than 256 kB of other values')
  return linked
}

/** The kept parts of a result, in which files are named by places instead of URLs. */
function keptParts(task: string, stored: unknown, outputs: readonly string[]) {
  const files: FileAt[] = []
  // Nobody can know it, so no text of a model is taken for a file.
  const mark = randomUUID()
  const named: { id: string; name: string }[] = []
  const shown = shownResult(task, stored, ({ id, name }) => `${mark} ${named.push({ id, name }) - 1}`)
  const visit = (value: unknown, at: readonly (string | number)[]): unknown => {
    if (typeof value === 'string' && value.startsWith(`${mark} `)) {
      files.push({ at, ...named[Number(value.slice(mark.length + 1))]! })
      return ''
    }
    if (Array.isArray(value)) return value.map((part, index) => visit(part, [...at, index]))
    if (value === null || typeof value !== 'object') return value
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, visit(part, [...at, name])]))
  }
  const kept = prune(shown, outputs)
  return { kept: hasFiles(task) ? visit(kept, []) : kept, files }
}

const tooLarge = (id: string, what: string): Failure =>
  new Failure(
    'payload_too_large',
    `The outputs of the execution ${id} have ${what}. Keep fewer values with 'outputs' of its nodes.`,
  )
