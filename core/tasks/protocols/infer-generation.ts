import { Failure, invalidValue } from '../../failure.ts'
import type { Lease } from '../../models/fleet.ts'
import { generationTasks, operationOf } from '../../schemas/task.ts'
import type { RunReport } from '../run-job.ts'
import { readAnswer } from './ask.ts'
import { EngineFault, MessageReader } from './engine-messages.ts'
import { oneLine } from './engine-text.ts'
import { type EngineMessage, type GenerationCall, generatePath } from './generation-call.ts'
import { callWithFiles, ReceivedFiles } from './generation-files.ts'
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
 * Runs one generation on an engine: sends the call, reports progress and log lines, and resolves with the files that are
 * then in the folder of the call. Rejects with Failure `worker_error` if the engine fails or violates the protocol,
 * `invalid_value` if it refuses the request, or with the signal's reason; then the request to the engine is aborted at once.
 */
async function runGeneration(
  lease: Lease,
  path: string,
  generation: GenerationCall,
  signal: AbortSignal,
  report: RunReport,
): Promise<Completed> {
  let last: EngineMessage | undefined
  let received: ReceivedFiles | undefined
  const reader = new MessageReader(message => {
    if (message.type === 'progress') report.progress(message.fraction)
    else if (message.type === 'preview')
      report.preview?.({ image: message.image, bytes: Buffer.from(message.data, 'base64') })
    else if (message.type === 'log') report.log(message.level, message.message)
    else last = message
    if (message.type !== 'completed' || lease.sharesFolders) return undefined
    return (received = new ReceivedFiles(generation.folder, message.files))
  })
  const sent = lease.sharesFolders ? { body: JSON.stringify(generation) } : await callWithFiles(generation)
  const call = { ...sent, path, stream: true, maxBytes: Number.POSITIVE_INFINITY }
  try {
    return await readAnswer(listener => lease.open(call, listener), signal, {
      chunk(bytes, exchange) {
        if (reader.feed(bytes)) return
        exchange.pause()
        received!.drained = () => exchange.resume()
      },
      async finished() {
        reader.end()
        await received?.end()
        const final = last as Extract<EngineMessage, { type: 'completed' | 'failed' }>
        if (final.type === 'completed') return received ? { ...final, files: received.files } : final
        throw refusal(lease.modelId, final.error)
      },
    })
  } catch (thrown) {
    received?.abandon()
    if (!lease.sharesFolders && thrown instanceof Failure && wantsFolder(thrown))
      throw new Failure('worker_error', takesNoFiles(lease.modelId))
    throw thrown instanceof EngineFault ? workerError(lease.modelId, thrown.message) : thrown
  }
}

/** Whether an engine that knows only folders has refused a call with files, or one without a folder. */
const wantsFolder = ({ code, message }: Failure): boolean =>
  code === 'invalid_json' || (code === 'invalid_value' && /\bfolder\b/.test(message))

const takesNoFiles = (modelId: string): string =>
  `The engine of '${modelId}' does not take files with a request, which an engine in a pool must. Update it there. See 'Files with a request' in: infer help pools`

const refusal = (modelId: string, { message, invalid }: { message: string; invalid: boolean }): Failure =>
  invalid
    ? invalidValue(`The engine refused the request: ${oneLine(message) || 'it did not say why'}`)
    : new Failure('worker_error', `The engine of '${modelId}' failed: ${oneLine(message) || 'it did not say why'}`)
