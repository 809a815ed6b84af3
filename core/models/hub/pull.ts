import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readlink, rename, symlink, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { GgufHeader } from '../gguf-header.ts'
import type { Recognition } from '../recognition/recognition.ts'
import { chooseFiles, type DownloadChoice, filesByName, type HubFile } from './choose.ts'
import { layoutOf } from './layout.ts'
import { listRepository } from './listing.ts'
import type { HubReference } from './reference.ts'
import { readRemoteHeader, readRemoteJson, recogniseRemote } from './remote-recognition.ts'
import { defaultRetryRules, openDownload, type RetryRules } from './requests.ts'
import type { HubSettings } from './settings.ts'
import { download, isComplete, requireSpace, type TransferEvent } from './transfer.ts'

/** Events of a download. Sizes in bytes. */
export type PullEvent =
  /** The first request was sent. */
  | { event: 'connect'; host: string; what: string }
  | {
      event: 'plan'
      source: string
      commit: string | null
      files: readonly { file: string; bytes: number; present: boolean }[]
      bytes: number
      others: readonly string[]
    }
  | TransferEvent
  | { event: 'file'; file: string; path: string; bytes: number; present: boolean }

export interface Pulled {
  kind: DownloadChoice['kind']
  /** The file to load, the first part of a model in parts, or the folder of a safetensors model. */
  path: string
  /** `present`: the file was not downloaded because it existed. */
  files: readonly { file: string; path: string; bytes: number; present: boolean }[]
  /** Other models of the repository. */
  others: readonly string[]
  commit: string | null
  /** `owner/name`; null for a download from another URL. */
  repository: string | null
}

export interface PullTools {
  hub: HubSettings
  signal: AbortSignal
  onEvent: (event: PullEvent) => void
  retryRules?: RetryRules
  /** Exactly these files, by their paths in the repository, instead of those that are chosen. */
  names?: readonly string[] | undefined
  /** Called with what the model is before the download, if the server supports ranges. If it throws, the download ends. */
  preview?: (preview: PullPreview) => Promise<void>
}

export interface PullPreview {
  /** The header of a GGUF model. */
  header?: GgufHeader
  /** What any other model is. */
  recognition?: Recognition
  /** Bytes of all its files. */
  totalBytes: number
  /** Path of the model after the download. */
  path: string
  repository: string | null
  /** Bytes that must still be downloaded. */
  bytes: number
}

/**
 * Downloads a model from a hub into the shared cache. Existing files are not downloaded again, partial downloads are
 * resumed, and every file is verified before it gets its name.
 * Rejects with Failure, or with the reason of `signal`; then everything that has been downloaded is kept.
 */
export async function pullModel(
  reference: HubReference,
  { hub, signal, onEvent, retryRules = defaultRetryRules, preview, names }: PullTools,
): Promise<Pulled> {
  const { repository, revision } = reference
  const target = new URL(hub.endpoint)
  const { ask, first } = openDownload({ target, hub, repository, retryRules, signal })
  onEvent({ event: 'connect', host: target.host, what: repository })
  const { commit, files } = await first(() => listRepository(reference, hub.endpoint, ask))
  const urlOf = (path: string) =>
    `${hub.endpoint}/${repository}/resolve/${commit}/${path.split('/').map(encodeURIComponent).join('/')}`
  const tools = { ask, retryRules, signal, onEvent }
  const remote = { repository, urlOf, ...tools }
  const index = reference.file === null && !names ? await readRemoteJson(files, 'model_index.json', remote) : undefined
  const choice = names ? filesByName(repository, files, names) : chooseFiles(repository, files, reference.file, index)
  const layout = layoutOf(hub.cache, repository)
  const present = await Promise.all(choice.files.map(({ size, hash }) => isComplete(layout.blob(hash.hex), size)))
  const missing = choice.files.filter((_, at) => !present[at])
  const path = choice.main === null ? layout.snapshot(commit) : layout.file(commit, choice.main)
  if (preview && missing.length > 0) {
    const sizes = { path, repository, bytes: bytesOf(missing), totalBytes: bytesOf(choice.files) }
    if (choice.kind === 'gguf') {
      const parts = choice.files.map(file => ({ name: file.path, url: urlOf(file.path), size: file.size }))
      const header = await readRemoteHeader(parts, remote)
      if (header) await preview({ header, ...sizes })
    } else {
      const recognition = await recogniseRemote(choice, remote)
      if (recognition) await preview({ recognition, ...sizes })
    }
  }
  onEvent({
    event: 'plan',
    source: `hf:${repository}`,
    commit,
    files: choice.files.map(({ path, size }, at) => ({ file: path, bytes: size, present: present[at]! })),
    bytes: bytesOf(choice.files),
    others: choice.others,
  })
  await mkdir(layout.blobs, { recursive: true })
  await requireSpace(
    layout.root,
    missing.map(({ size, hash }) => ({ size, incomplete: layout.incomplete(hash.hex) })),
  )
  const pulled: Pulled['files'][number][] = []
  for (const { path: file, size, hash } of choice.files) {
    const { hex } = hash
    const blob = { path: layout.blob(hex), incomplete: layout.incomplete(hex), lock: layout.lock(hex) }
    const isNew = await download({ name: file, url: urlOf(file), size, hash, ...blob }, tools)
    const target = layout.file(commit, file)
    await link(layout.link(file, hex), target)
    pulled.push({ file, path: target, bytes: size, present: !isNew })
    onEvent({ event: 'file', ...pulled.at(-1)! })
  }
  if (revision !== commit) await replace(layout.ref(revision), path => writeFile(path, commit))
  return { kind: choice.kind, path, files: pulled, others: choice.others, commit, repository }
}

const bytesOf = (files: readonly HubFile[]): number => files.reduce((sum, { size }) => sum + size, 0)

async function link(to: string, at: string): Promise<void> {
  if ((await readlink(at).catch(() => null)) === to && existsSync(at)) return
  await replace(at, path => symlink(to, path))
}

/** Creates a file under a temporary name and renames it, so that readers never see half of it. */
async function replace(path: string, make: (path: string) => Promise<void>): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const made = `${path}.${randomUUID()}.new`
  await make(made)
  await rename(made, path)
}
