import { readdir, stat } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { sameEngine } from '../../core/models/change.ts'
import { partsOf } from '../../core/models/gguf-parts.ts'
import type { Model } from '../../core/models/model.ts'
import { absent } from '../../core/models/source-files.ts'
import type { SourceFault } from '../estimate/source-check.ts'
import type { LoadRefusal } from '../presets/load-refusal.ts'

/**
 * The models whose files their engine has refused for good. Each is refused until its files or its settings change, so that
 * no engine is started in vain. In memory only: after a restart of the server one start is tried again.
 */
export function openRefusedFiles() {
  const refused = new Map<string, { model: Model; files: string; fault: SourceFault }>()

  return {
    /** Returns the fault for callers; undefined for files that infer does not know, which might change unseen. */
    async add(model: Model, { said, lies }: LoadRefusal): Promise<SourceFault | undefined> {
      const files = await stateOfFiles(model.source)
      if (files === undefined) return undefined
      const instead =
        lies === 'files'
          ? 'Download the model again.'
          : 'A newer version of the engine may know it, or another file of this model.'
      const text = `The model '${model.id}' cannot be loaded. Its engine says: ${said}. ${instead}`
      const fault: SourceFault = { text, lies }
      refused.set(model.id, { model, files, fault })
      return fault
    },
    async find(model: Model): Promise<SourceFault | undefined> {
      const known = refused.get(model.id)
      if (!known) return undefined
      if (sameEngine(known.model, model) && known.files === (await stateOfFiles(model.source))) return known.fault
      refused.delete(model.id)
      return undefined
    },
  }
}

/** A text that changes with the files of a source; undefined for a name on a hub and for files that are not there. */
async function stateOfFiles(source: string | undefined): Promise<string | undefined> {
  if (source === undefined || !isAbsolute(source)) return undefined
  try {
    const names = (await stat(source)).isDirectory()
      ? (await readdir(source)).map(name => join(source, name))
      : [source]
    const found = await Array.fromAsync(names.toSorted(), name => stat(name))
    const missing = await absent(partsOf(source))
    return `${missing.length} ${found.map(({ ino, size, mtimeMs }) => `${ino}:${size}:${mtimeMs}`).join(' ')}`
  } catch {
    return undefined
  }
}
