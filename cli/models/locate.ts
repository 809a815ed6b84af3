import { existsSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { Failure } from '../../core/failure.ts'
import type { GgufHeader } from '../../core/models/gguf-header.ts'
import { pullAddress } from '../../core/models/hub/address.ts'
import { type Preview, type PullEvent, pullModel } from '../../core/models/hub/pull.ts'
import { parseReference } from '../../core/models/hub/reference.ts'
import type { HubSettings } from '../../core/models/hub/settings.ts'
import { nearestCatalogNames } from '../../core/models/model-catalog/model-catalog.ts'
import { whisperTasks } from '../../core/models/whisper-tasks.ts'
import { didYouMean } from '../../core/nearest.ts'

/** A model whose files are on this machine. */
export interface Located {
  /** `file`: another format, which only some engines read. `workflow`: of ComfyUI, in API format. */
  kind: 'gguf' | 'folder' | 'file' | 'workflow'
  /** Absolute; the first part of a split model. */
  path: string
  /** Names from which to make its id, best first. */
  names: readonly string[]
  /** The header, if the file is not downloaded yet. */
  header?: GgufHeader
  /** Arguments that the engine needs to load all its files. */
  args?: readonly string[]
}

/**
 * Locates a model by file, folder, URL or hub reference. Downloads from a hub go into the shared cache, downloads from
 * a URL into `models` of the data directory. Throws Failure, and the reason of an aborted `signal`.
 */
export async function locate(
  text: string,
  {
    dataDir,
    hub,
    signal,
    onEvent,
    preview,
  }: {
    dataDir: string
    hub: HubSettings
    signal: AbortSignal
    onEvent: (event: PullEvent) => void
    /**
     * Called before a GGUF model is downloaded; an error that it throws ends the download. `bytes` remain to download.
     */
    preview?: (located: Located, bytes: number) => Promise<void>
  },
): Promise<Located> {
  const reference = parseReference(text, hub.endpoint)
  const tools = {
    hub,
    signal,
    onEvent,
    preview: async ({ header, path, repository, bytes }: Preview) =>
      preview?.({ kind: 'gguf', path, names: repository === null ? [path] : [repository, path], header }, bytes),
  }
  if (reference) {
    const { kind, path, repository } = await pullModel(reference, tools)
    if (kind === 'file' && !(await whisperTasks(path))) throw notRunnable(path)
    return { kind: kind === 'snapshot' ? 'folder' : kind, path, names: [repository!, path] }
  }
  if (isAddress(text)) {
    const { path } = await pullAddress(text, join(dataDir, 'models'), tools)
    return { kind: 'gguf', path, names: [path] }
  }
  checkLocal(text, hub)
  const path = resolve(text)
  if (!statSync(path).isDirectory()) return { kind: (await whisperTasks(path)) ? 'file' : 'gguf', path, names: [path] }
  if (!existsSync(join(path, 'config.json')))
    throw new Failure(
      'invalid_value',
      `The folder '${path}' has no config.json, so it is not a model. Name a .gguf file.`,
    )
  return { kind: 'folder', path, names: [basename(path)] }
}

/** Throws Failure `invalid_value` when the text names a local file or folder that does not exist. */
export function checkLocal(text: string, hub: HubSettings): void {
  if (parseReference(text, hub.endpoint) || isAddress(text) || existsSync(resolve(text))) return
  throw new Failure('invalid_value', `There is no file '${resolve(text)}'.${hintFor(text)}`)
}

/** Returns a suggestion for a text that names no file. */
function hintFor(text: string): string {
  if (/^[\w.-]+\/[\w.-]+$/.test(text)) return ` If it is on a hub, write hf:${text}.`
  if (/[/\\]|\.gguf$/i.test(text)) return ''
  return ` The catalog has no model '${text}' either.${didYouMean(nearestCatalogNames(text))} See: infer model catalog`
}

const isAddress = (text: string): boolean => /^https?:\/\//i.test(text)

const notRunnable = (path: string): Failure =>
  new Failure(
    'invalid_value',
    `'${path}' is downloaded, but no engine here runs files of that kind. Name a .gguf file, or a Whisper model for whisper.cpp.`,
  )
