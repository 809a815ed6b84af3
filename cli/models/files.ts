import { readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'
import type { Model } from '../../core/models/model.ts'

export interface OwnFile {
  /** Absolute, with all symbolic links resolved. */
  path: string
  bytes: number
}

/** File name of one part of a split GGUF model. */
const part = /^(.*)-\d{5}-of-(\d{5})\.gguf$/

/**
 * Returns the files that may be deleted with a model: files in `folder`, where infer saves downloads from URLs, that no
 * other model uses, including all parts of a split file. Files outside the folder, also behind links, are not infer's.
 */
export function ownFiles(model: Model, all: readonly Model[], folder: string): OwnFile[] {
  const path = realOf(model.source)
  const within = realOf(folder)
  if (path === undefined || within === undefined || !path.startsWith(within + sep)) return []
  if (all.some(other => other.id !== model.id && realOf(other.source) === path)) return []
  const [, name, count] = part.exec(basename(path)) ?? []
  const paths =
    name === undefined
      ? [path]
      : readdirSync(dirname(path))
          .filter(file => part.exec(file)?.[1] === name && part.exec(file)?.[2] === count)
          .map(file => join(dirname(path), file))
  return paths
    .filter(one => statSync(one).isFile() && realOf(one) === one)
    .map(one => ({ path: one, bytes: statSync(one).size }))
}

/** Deletes the files, and the locks and license texts that a download created beside them. */
export function deleteFiles(files: readonly OwnFile[]): void {
  for (const { path } of files)
    for (const left of [path, `${path}.lock`, `${path}.LICENSE`]) rmSync(left, { force: true })
}

function realOf(path: string | undefined): string | undefined {
  if (path === undefined) return undefined
  try {
    return realpathSync(resolve(path))
  } catch {
    return undefined
  }
}
