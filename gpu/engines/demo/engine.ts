import { invalid } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import { generatePath } from '../../../core/tasks/protocols/generation-call.ts'
import { checkListenAddress, type EngineSettings, listModel, openHttp, openStopSignal } from '../http.ts'
import type { StreamForm } from '../reply.ts'
import { openGenerate } from './generate.ts'
import { sharp } from './images.ts'
import { listVoices, synthesizeHandler } from './synthesize.ts'
import { transcribeHandler } from './transcribe.ts'

export interface DemoEngineSettings extends EngineSettings {
  /** Minimum duration of each step in milliseconds, so that users can watch progress and queues. */
  stepMs: number
  ffmpeg: string
  /** Where the files of calls that bring some are kept. */
  folder: string
  /** Serves audio only, without the start time and memory that images need. */
  soundOnly: boolean
}

/** Maximum step time: with a longer one the engine would seem to hang. */
const longestStepMs = 60_000

/** JSON Lines: one message per line. */
const lines: StreamForm = {
  contentType: 'application/x-ndjson',
  failure: ({ message, status, code }) =>
    `${JSON.stringify({ type: 'failed', error: { message, invalid: status < 500 && code !== 'cancelled' } })}\n`,
}

/**
 * Runs the demo engine until SIGTERM or SIGINT. Without any model it draws images and videos of the requested size and
 * length, encodes text as tones and transcribes such tones.
 * Resolves when no call is running. Throws Failure `invalid_value` if it cannot start.
 */
export async function runDemoEngine(settings: DemoEngineSettings, { log }: { log: Log }): Promise<void> {
  const { id, stepMs, soundOnly } = settings
  checkListenAddress(settings)
  if (!(stepMs >= 0 && stepMs <= longestStepMs))
    throw invalid('step-ms', `--step-ms must be from 0 to ${longestStepMs}, not ${stepMs}.`)
  using stop = openStopSignal()
  // Load it before serving, because loading blocks the event loop.
  if (!soundOnly) sharp()
  const generate = openGenerate(settings)
  const models = listModel(id, 'infer')
  const server = await openHttp({
    ...settings,
    log,
    stream: lines,
    filesFolder: settings.folder,
    // An hour of audio is 115 MB.
    bodyLimit: 260 << 20,
    health: () => ({ status: 'ok', running: generate.running() }),
    handlers: () => ({
      'GET /v1/models': models,
      'GET /v1/audio/voices': listVoices,
      'POST /v1/audio/speech': synthesizeHandler,
      'POST /v1/audio/transcriptions': transcribeHandler,
      ...(soundOnly ? {} : { [`POST ${generatePath}`]: generate.handle }),
    }),
  })
  log.info('The engine is ready', { model: id, address: server.address })
  await stop.stopped
  await server.close()
  await generate.idle()
}
