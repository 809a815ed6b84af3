import { Failure } from '../../core/failure.ts'
import type { Log } from '../../core/log.ts'
import type { EngineList, EngineSetupRun, Engines } from '../../core/models/engine-setup.ts'
import type { CommandEvent, OwnCommand } from './own-command.ts'

/** How long the answer about the machine holds, milliseconds: a program may be installed while the server runs. */
const listMs = 30_000
/** Lines of a setup that are kept. */
const maxLines = 300

/** What the commands that install print at their end. */
interface Installed {
  version?: string
  environment?: { version: string }
  /** What the trial of a release has shown, as sentences. */
  trial?: string
  warnings?: readonly string[]
}

/** Opens the engines of this machine: it reads and installs through `infer engine list` and `infer engine setup`. */
export function openServerEngines({
  run,
  config,
  log,
  now = Date.now,
}: {
  run: OwnCommand
  /** The configuration file, to which the setup of speech adds two models. */
  config: string
  log: Log
  now?: () => number
}): Engines & { close: () => void } {
  let known: { until: number; list: Promise<EngineList> } | undefined
  const newest = new Map<string, EngineSetupRun>()
  let current: { name: string; controller: AbortController } | undefined

  function list(): Promise<EngineList> {
    if (!known || known.until <= now()) {
      const asked = run<EngineList>(['engine', 'list']).then(({ engines, setups }) => ({ engines, setups }))
      // A failure is not remembered.
      asked.catch(() => (known = undefined))
      known = { until: now() + listMs, list: asked }
    }
    return known.list
  }

  async function install(name: string, words: readonly string[], signal: AbortSignal): Promise<void> {
    const become = (facts: Partial<EngineSetupRun>) => newest.set(name, { ...newest.get(name)!, ...facts })
    const onEvent = ({ event, text, file, bytes = 0, total_bytes: totalBytes = bytes }: CommandEvent) => {
      const { log: lines } = newest.get(name)!
      if (text !== undefined)
        become({ log: [...lines, text].slice(-maxLines), ...(event === 'step' && { step: text, file: null }) })
      else if (file !== undefined && (event === 'progress' || event === 'file')) become({ file, bytes, totalBytes })
    }
    try {
      const installed = await run<Installed>([...words, '--events'], { signal, config, onEvent })
      become({ status: 'completed', detail: detailOf(name, installed) })
    } catch (thrown) {
      if (signal.aborted) become({ status: 'cancelled' })
      else {
        const { code, message, cause } = Failure.from(thrown)
        if (code === 'worker_error' || code === 'internal_error')
          log.error('Setting up an engine failed', { setup: name }, cause ?? thrown)
        become({ status: 'failed', detail: message })
      }
    }
    known = undefined
    current = undefined
  }

  return {
    list,
    run: name => newest.get(name) ?? null,
    async begin(name) {
      const { setups } = await list()
      const setup = setups.find(one => one.name === name)
      if (!setup) {
        const names = setups.map(one => one.name).join(', ')
        throw new Failure('not_found', `There is no setup '${name}'. Setups: ${names}.`, { param: 'name' })
      }
      if (current)
        throw new Failure('conflict', `'${current.name}' is being installed. Wait for its end, or cancel it.`)
      const controller = new AbortController()
      current = { name, controller }
      const begun: EngineSetupRun = {
        status: 'running',
        step: null,
        file: null,
        bytes: 0,
        totalBytes: 0,
        detail: null,
        log: [],
      }
      newest.set(name, begun)
      const words = ['engine', 'setup', name, ...(setup.for_processor ? ['--cpu'] : [])]
      void install(name, words, controller.signal)
      return begun
    },
    cancel(name) {
      if (current?.name !== name) return null
      current.controller.abort()
      return newest.get(name)!
    },
    /** Stops a run; what has arrived is kept. */
    close: () => current?.controller.abort(),
  }
}

function detailOf(name: string, { version, environment, trial, warnings = [] }: Installed): string {
  const installed = environment?.version ?? version
  const what = installed === undefined ? `${name} is installed.` : `${name} ${installed} is installed.`
  return [what, ...(trial ? [trial] : []), ...warnings].join(' ')
}
