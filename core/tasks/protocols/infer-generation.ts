import { Failure } from '../../failure.ts'
import type { EngineListener, Lease } from '../../models/fleet.ts'
import { generationTasks, operationOf } from '../../schemas/task.ts'
import type { RunReport } from '../run-job.ts'
import { type EngineMessage, type GenerationCall, generatePath } from './generation-call.ts'
import { EngineFault, MessageReader } from './messages.ts'
import type { GenerationProtocol } from './protocol.ts'

export type Completed = Extract<EngineMessage, { type: 'completed' }>

/** The Failure of a job for an error of its engine. */
export const workerError = (modelId: string, what: string): Failure =>
  new Failure('worker_error', `The engine of '${modelId}' ${what}. Trying again may help.`)

/** Our own protocol for engines that write files, described at `generatePath`. */
export const inferGeneration: GenerationProtocol = {
  name: 'infer-generation',
  paths: Object.fromEntries(generationTasks.map(task => [operationOf(task), generatePath])),
  generate: (lease, { path }, call, signal, report) => runGeneration(lease, path, call, signal, report),
}

/**
 * Runs one generation on an engine: sends the call, reports progress and log lines, and resolves with the files that the
 * engine names. Rejects with Failure `worker_error` if the engine fails or violates the protocol, `invalid_value` if it
 * refuses the request, or with the signal's reason; then the request to the engine is aborted at once.
 */
function runGeneration(
  lease: Lease,
  path: string,
  call: GenerationCall,
  signal: AbortSignal,
  report: RunReport,
): Promise<Completed> {
  return new Promise((resolve, reject) => {
    let last: EngineMessage | undefined
    const reader = new MessageReader(message => {
      if (message.type === 'progress') report.progress(message.fraction)
      else if (message.type === 'preview')
        report.preview?.({ image: message.image, bytes: Buffer.from(message.data, 'base64') })
      else if (message.type === 'log') report.log(message.level, message.message)
      else last = message
    })
    const over = (settle: () => void) => {
      signal.removeEventListener('abort', leave)
      settle()
    }
    const broke = (thrown: unknown) => {
      const failure = thrown instanceof EngineFault ? workerError(lease.modelId, thrown.message) : thrown
      over(() => reject(failure))
    }
    const leave = () => {
      exchange.abort()
      over(() => reject(signal.reason as Failure))
    }
    const listener: EngineListener = {
      accepted() {},
      chunk(bytes) {
        try {
          reader.feed(bytes)
        } catch (thrown) {
          exchange.abort()
          broke(thrown)
        }
      },
      finished() {
        try {
          reader.end()
          const final = last as Extract<EngineMessage, { type: 'completed' | 'failed' }>
          if (final.type === 'completed') over(() => resolve(final))
          else over(() => reject(refusal(lease.modelId, final.error)))
        } catch (thrown) {
          broke(thrown)
        }
      },
      failed: failure => over(() => reject(failure)),
    }
    const exchange = lease.open(
      { path, body: JSON.stringify(call), stream: true, maxBytes: Number.POSITIVE_INFINITY },
      listener,
    )
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
  })
}

const tidy = (message: string): string =>
  message
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, 500)

const refusal = (modelId: string, { message, invalid }: { message: string; invalid: boolean }): Failure =>
  invalid
    ? new Failure('invalid_value', `The engine refused the request: ${tidy(message) || 'it did not say why'}`)
    : new Failure('worker_error', `The engine of '${modelId}' failed: ${tidy(message) || 'it did not say why'}`)
