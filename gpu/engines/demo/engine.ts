import { Failure } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import { generatePath } from '../../../core/tasks/protocols/generation-call.ts'
import { checkListenAddress, type ListenAddress, openHttp } from '../http.ts'
import type { StreamForm } from '../reply.ts'
import { openStopSignal } from '../stop-signal.ts'
import { openGenerate } from './generate.ts'
import { sharp } from './images.ts'
import { listVoices, synthesize } from './synthesize.ts'
import { transcribe } from './transcribe.ts'

/** What `infer engine demo` is told. */
export interface DemoEngineSettings extends ListenAddress {
  /** The name under which it answers. */
  id: string
  /** How long each step takes at least, in milliseconds, so that progress and queues can be watched. */
  stepMs: number
  /** The ffmpeg program. */
  ffmpeg: string
  /** Serves sound alone: what pictures take at the start and in memory is left out. */
  soundOnly: boolean
  /** When given, every request but /health needs it as bearer token. */
  key?: string
}

/** Longest that a step can be made to take: longer, and it would look stuck. */
export const longestStepMs = 60_000

/** Messages one a line. */
const lines: StreamForm = {
  contentType: 'application/x-ndjson',
  failure: ({ message, status, code }) =>
    `${JSON.stringify({ type: 'failed', error: { message, invalid: status < 500 && code !== 'cancelled' } })}\n`,
}

/**
 * The demo engine: draws pictures and videos of the asked size and length and says texts in tones without any model,
 * and writes such tones down again, until SIGTERM or SIGINT.
 * Resolves when nothing is drawn any more. Throws Failure `invalid_value` when it cannot start.
 */
export async function runDemoEngine(settings: DemoEngineSettings, { log }: { log: Log }): Promise<void> {
  const { id, stepMs, soundOnly } = settings
  checkListenAddress(settings)
  if (!(stepMs >= 0 && stepMs <= longestStepMs))
    throw new Failure('invalid_value', `--step-ms must be from 0 to ${longestStepMs}, not ${stepMs}.`, {
      param: 'step-ms',
    })
  using stop = openStopSignal()
  // Now, because loading it keeps everything else waiting.
  if (!soundOnly) sharp()
  const generate = openGenerate(settings)
  const created = Math.floor(Date.now() / 1000)
  const server = await openHttp({
    ...settings,
    log,
    stream: lines,
    // An hour of sound is 115 MB.
    bodyLimit: 260 << 20,
    health: () => ({ status: 'ok', running: generate.running() }),
    handlers: () => ({
      'GET /v1/models': (_body, reply) =>
        reply.json({ object: 'list', data: [{ id, object: 'model', created, owned_by: 'infer' }] }),
      'GET /v1/audio/voices': listVoices,
      'POST /v1/audio/speech': synthesize,
      'POST /v1/audio/transcriptions': transcribe,
      ...(soundOnly ? {} : { [`POST ${generatePath}`]: generate.handle }),
    }),
  })
  log.info('The engine is ready', { model: id, address: settings.socket ?? `http://127.0.0.1:${server.port}` })
  await stop.stopped
  await server.close()
  await generate.idle()
}
