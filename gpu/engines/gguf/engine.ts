import type { Log } from '../../../core/log.ts'
import { type Handlers, openHttp, openStopSignal } from '../http.ts'
import { openHandlers } from './handlers.ts'
import { type LoadedModel, loadModel } from './model.ts'
import { checkOptions, type GgufEngineSettings } from './options.ts'

/**
 * Runs the built-in engine: serves one GGUF file over an OpenAI-compatible API until SIGTERM or SIGINT. Resolves when
 * everything is closed. Throws Failure if it cannot start: `invalid_value` for the options, `worker_error` for the
 * model.
 */
export async function runGgufEngine(options: GgufEngineSettings, { log }: { log: Log }): Promise<void> {
  checkOptions(options)
  const started = performance.now()
  const stop = openStopSignal()

  let progress = 0
  let handlers: Handlers | undefined
  let loaded: LoadedModel | undefined
  let idle: (() => Promise<void>) | undefined
  let server: Awaited<ReturnType<typeof openHttp>> | undefined
  try {
    server = await openHttp({
      ...options,
      log,
      health: () => (handlers ? { status: 'ok' } : { status: 'loading', progress }),
      handlers: () => handlers,
    })
    const onProgress = (now: number) => {
      progress = Math.min(now, 0.99)
    }
    loaded = await loadModel(options, { log, onProgress, signal: stop.signal })
    const { context, parallel } = loaded.sizing
    const opened = await openHandlers(loaded, { ...options, context, parallel }, log)
    handlers = opened.handlers
    idle = opened.idle
    log.info('The engine is ready', {
      model: options.id,
      address: server.address,
      gpu: String(loaded.llama.gpu),
      ms: Math.round(performance.now() - started),
    })
    await stop.stopped
  } catch (error) {
    if (!stop.signal.aborted) throw error
  } finally {
    stop[Symbol.dispose]()
    await server?.close()
    // llama.cpp must finish its computation before its memory is freed.
    await idle?.()
    await loaded?.close()
  }
}
