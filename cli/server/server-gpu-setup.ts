import { Failure } from '../../core/failure.ts'
import type { Log } from '../../core/log.ts'
import type { GpuSetup, GpuSetupPlan, GpuSetupRun } from '../../core/models/gpu-setup.ts'
import type { CommandEvent, OwnCommand } from './own-command.ts'

/** How long the answer about the machine holds, milliseconds: a driver may be installed while the server runs. */
const planMs = 30_000

/** Opens the setup of the GPUs: it reads and changes through `infer engine setup gpu`. */
export function openServerGpuSetup({
  run,
  log,
  now = Date.now,
}: {
  run: OwnCommand
  log: Log
  now?: () => number
}): GpuSetup & { close: () => void } {
  let known: { until: number; plan: Promise<GpuSetupPlan> } | undefined
  let newest: GpuSetupRun | null = null
  let controller: AbortController | undefined

  function plan(): Promise<GpuSetupPlan> {
    if (!known || known.until <= now()) {
      const asked = run<GpuSetupPlan>(['engine', 'setup', 'gpu', '--dry-run'])
      // A failure is not remembered.
      asked.catch(() => (known = undefined))
      known = { until: now() + planMs, plan: asked }
    }
    return known.plan
  }

  async function install(record: GpuSetupRun, { signal }: AbortController): Promise<void> {
    const onEvent = ({ event, file, bytes = 0, total_bytes: total = bytes }: CommandEvent) => {
      if (file !== undefined && (event === 'progress' || event === 'file'))
        Object.assign(record, { file, bytes, totalBytes: total })
    }
    try {
      const words = ['engine', 'setup', 'gpu', '--yes', '--events']
      const { works, detail, advice } = await run<{ works: boolean; detail: string; advice: string | null }>(words, {
        signal,
        onEvent,
      })
      record.status = works ? 'completed' : 'failed'
      record.detail = works ? detail : `It is installed, but does not work yet: ${detail}.${advice ? ` ${advice}` : ''}`
    } catch (thrown) {
      if (signal.aborted) record.status = 'cancelled'
      else {
        const { code, message, cause } = Failure.from(thrown)
        if (code === 'worker_error' || code === 'internal_error')
          log.error('Setting up the GPUs failed', {}, cause ?? thrown)
        Object.assign(record, { status: 'failed', detail: message })
      }
    }
    known = undefined
    controller = undefined
  }

  return {
    plan,
    run: () => newest && { ...newest },
    async begin() {
      const { backend, why, advice, installed } = await plan()
      if (controller) throw new Failure('conflict', 'The GPUs are being set up already.')
      if (installed) throw new Failure('conflict', 'A backend for the GPUs is installed already.')
      if (backend === null) throw new Failure('conflict', `${why}.${advice === null ? '' : ` ${advice}`}`)
      newest = { status: 'running', file: null, bytes: 0, totalBytes: 0, detail: null }
      controller = new AbortController()
      void install(newest, controller)
      return { ...newest }
    },
    cancel() {
      if (!controller) return null
      controller.abort()
      return newest && { ...newest }
    },
    /** Stops a run; what has arrived is kept. */
    close: () => controller?.abort(),
  }
}
