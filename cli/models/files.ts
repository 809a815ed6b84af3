import { readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'
import type { Model } from '../../core/models/model.ts'

export interface OwnFile {
  /** Absolute, all links followed. */
  path: string
  bytes: number
}

/** One part of a GGUF file in several. */
const part = /^(.*)-\d{5}-of-(\d{5})\.gguf$/

/**
 * The files of a model that may be deleted with it: those in `folder`, where infer puts what it downloads from an
 * address, that no other model is loaded from. What is elsewhere belongs to somebody else, a link that leads out of
 * the folder too. All parts of a file in several.
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

/** Deletes them, and what a download has left beside them: locks and license texts. */
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
