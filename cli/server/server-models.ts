import { resolve } from 'node:path'
import { Failure } from '../../core/failure.ts'
import { newId } from '../../core/ids.ts'
import type { Log } from '../../core/log.ts'
import type { Model } from '../../core/models/model.ts'
import type {
  CatalogEntryView,
  ConfigLines,
  ModelAdministration,
  ModelDownload,
  ModelProposal,
  ModelPull,
  ModelPullEvent,
  NewModelSettings,
} from '../../core/models/model-administration.ts'
import { addableAdapter } from './addable-adapter.ts'
import type { CommandEvent, OwnCommand } from './own-command.ts'

/** Downloads that run at the same time; more would only share the same line. */
const maxRunning = 4
/** Downloads that are remembered. */
const maxKept = 50
/** How long the answer about the catalogue holds, milliseconds: the memory of the machine changes with its engines. */
const catalogMs = 30_000

interface Running {
  record: ModelDownload
  controller: AbortController
}

function argumentsOf({
  id,
  tasks,
  context,
  concurrency,
  engine,
  memory,
  adapterOf,
  force,
}: NewModelSettings): string[] {
  const given: [name: string, value: string | number | undefined][] = [
    ['--id', id],
    ['--task', tasks?.join(',')],
    ['--context', context],
    ['--concurrency', concurrency],
    ['--engine', engine],
    ['--memory', memory],
    ['--adapter-of', adapterOf],
  ]
  return [
    ...given.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`])),
    ...(force ? ['--force', '--yes'] : []),
  ]
}

/** Opens the administration of models: each reading and change is a command in a process of its own. */
export function openServerModels({
  run,
  config,
  dataDir,
  configured,
  log,
  now = Date.now,
}: {
  run: OwnCommand
  /** The configuration file. */
  config: string
  dataDir: string
  /** The configured models. */
  configured: () => readonly Model[]
  log: Log
  now?: () => number
}): ModelAdministration & { close: () => void } {
  /** Newest last. */
  const all: Running[] = []
  let catalog: { until: number; entries: Promise<readonly CatalogEntryView[]> } | undefined

  async function download({ record, controller }: Running, settings: NewModelSettings): Promise<void> {
    const { signal } = controller
    const onEvent = ({ event, file, bytes = 0, total_bytes = bytes }: CommandEvent) => {
      if (file === undefined || (event !== 'progress' && event !== 'file')) return
      Object.assign(record, { file, bytes, totalBytes: total_bytes })
    }
    try {
      const words = ['model', 'add', record.model, ...argumentsOf(settings), '--events']
      const added = await run<{ model: { id: string } }>(words, { signal, config, onEvent })
      Object.assign(record, { status: 'completed', modelId: added.model.id })
    } catch (thrown) {
      if (signal.aborted) record.status = 'cancelled'
      else {
        const { code, message, cause } = Failure.from(thrown)
        if (code === 'worker_error' || code === 'internal_error')
          log.error('Adding a model failed', {}, cause ?? thrown)
        Object.assign(record, { status: 'failed', error: { code, message } })
      }
    } finally {
      record.finishedAt = now()
    }
  }

  const addable = (name: string, { adapterOf }: NewModelSettings): Promise<string> =>
    adapterOf === undefined
      ? addableName(name)
      : addableAdapter(name, adapterOf, { models: configured(), dataDir: resolve(dataDir) })

  return {
    catalog() {
      if (!catalog || catalog.until <= now()) {
        const entries = run<{ models: CatalogEntryView[] }>(['model', 'catalog']).then(({ models }) => models)
        // A failure is not remembered.
        entries.catch(() => (catalog = undefined))
        catalog = { until: now() + catalogMs, entries }
      }
      return catalog.entries
    },
    async propose(model, settings, signal) {
      const words = ['model', 'add', await addable(model, settings), ...argumentsOf(settings), '--dry-run']
      return run<ModelProposal>(words, { signal, config })
    },
    async add(name, settings) {
      const model = await addable(name, settings)
      const running = all.filter(({ record }) => record.status === 'running')
      if (running.some(({ record }) => record.model === model))
        throw new Failure('conflict', `'${model}' is being downloaded already.`, { param: 'model' })
      if (running.length >= maxRunning)
        throw new Failure('conflict', `${maxRunning} models are being downloaded. Wait for one of them, or cancel it.`)
      const record: ModelDownload = {
        id: newId('download'),
        model,
        status: 'running',
        file: null,
        bytes: 0,
        totalBytes: 0,
        modelId: null,
        error: null,
        createdAt: now(),
        finishedAt: null,
      }
      const one = { record, controller: new AbortController() }
      all.push(one)
      // The oldest that has ended: one that runs must stay, so that it can be cancelled.
      if (all.length > maxKept)
        all.splice(
          all.findIndex(({ record }) => record.status !== 'running'),
          1,
        )
      void download(one, settings)
      return { ...record }
    },
    downloads: () => all.map(({ record }) => ({ ...record })).toReversed(),
    cancel(id) {
      const found = all.find(({ record }) => record.id === id)
      found?.controller.abort()
      return found && { ...found.record }
    },
    remove: (id, { dryRun, deleteFiles }) =>
      run<{ lines: ConfigLines; deleted: string[] }>(
        ['model', 'remove', id, dryRun ? '--dry-run' : '--yes', ...(deleteFiles ? ['--delete-files'] : [])],
        { config },
      ),
    /** Stops all downloads; what has arrived is kept. */
    close(): void {
      for (const { controller } of all) controller.abort()
    },
  }
}

function progressOf({ event, file, bytes, total_bytes: total }: CommandEvent): ModelPullEvent | undefined {
  if (event === 'connect') return { status: 'pulling manifest' }
  if (event === 'progress' && file !== undefined) return { file, bytes: bytes ?? 0, total: total ?? 0 }
  if (event === 'file' && file !== undefined) return { file, bytes: bytes ?? 0, total: bytes ?? 0 }
  return undefined
}

/** Returns the function with which the server downloads models for Ollama's clients. */
export const openServerPull =
  (run: OwnCommand, config: string): ModelPull =>
  async (name, { signal, onEvent }) => {
    const what = await addableName(name)
    const onCommandEvent = (event: CommandEvent) => {
      const progress = progressOf(event)
      if (progress) onEvent(progress)
    }
    const words = ['model', 'add', what, '--events']
    const added = await run<{ model: { id: string } }>(words, { signal, config, onEvent: onCommandEvent })
    onEvent({ status: 'writing manifest' })
    return added.model.id
  }

/** Names of the hub in references of Ollama's clients. */
const ofHub = /^(?:hf\.co|huggingface\.co)\/([^/:\s]+\/[^/:\s]+)(?::([^/\s]+))?$/

/**
 * Returns what `infer model add` takes for a name that came over HTTP: a short name of the catalog, or a repository of
 * the hub, also in Ollama's form. Files of this machine and other addresses cannot be named: a token must not make the
 * server read them. Throws Failure `model_not_found`.
 */
async function addableName(name: string): Promise<string> {
  const [, repository, file] = ofHub.exec(name) ?? []
  if (repository !== undefined) return `hf:${repository}${file === undefined || file === 'latest' ? '' : `:${file}`}`
  if (/^hf:[^/\s]+\/[^/\s]+$/.test(name)) return name
  const { findCatalogModel, nearestCatalogNames } = await import('../../core/models/model-catalog/model-catalog.ts')
  const { didYouMean } = await import('../../core/nearest.ts')
  const model = findCatalogModel(name.replace(/:latest$/, ''))
  if (model) return model.name
  throw new Failure(
    'model_not_found',
    `The catalog has no model '${name.slice(0, 128)}'.${didYouMean(nearestCatalogNames(name))} See the names with: infer model catalog. For a repository of the hub, write hf:owner/name or hf.co/owner/name; add a file with: infer model add <file>.`,
    { param: 'model' },
  )
}
