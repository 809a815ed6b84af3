import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { link, lstat, open, readdir, rename, rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { inFolder } from '../caches/held-folder.ts'
import { openOwnerFiles, type SlotFile } from './owner-files.ts'
import type { MarkedPrompt, PromptMarks } from './prompt-marks.ts'

const namePattern =
  /^slot-(?<settings>[0-9a-f]{12})-(?<length>\d+)(?:\.(?<end>[0-9a-f]{12}))?-(?<powers>[0-9a-f.]*)-(?<bytes>\d+)\.state$/

/** Reads a name; undefined for a file of other settings, or of another kind. Pure. */
function slotFileOf(name: string, settings: string): SlotFile | undefined {
  const parts = namePattern.exec(name)?.groups
  if (parts?.settings !== settings) return undefined
  const powers = parts.powers ? parts.powers.split('.') : []
  return { name, bytes: Number(parts.bytes), marks: { length: Number(parts.length), end: parts.end ?? '', powers } }
}

const nameOf = (settings: string, { length, end, powers }: PromptMarks, bytes: number): string =>
  `slot-${settings}-${length}${end && `.${end}`}-${powers.join('.')}-${bytes}.state`

/**
 * The saved slots of a model: files in a folder for each organization, whose names are all that is known of them. The
 * engine itself sees only the folder `exchange`: what it saves is moved from there to its owner, and what it restores is
 * linked there for that time. The files belong to the caches, which delete them at any time. `settings`: 12 hexadecimal
 * digits for what the content of a slot depends on besides the model.
 */
export function openSlotFiles({ folder, exchange, settings }: { folder: string; exchange: string; settings: string }) {
  let files = new Map<string, ReturnType<typeof openOwnerFiles>>()

  const known = (owner: string) => {
    const own = files.get(owner) ?? openOwnerFiles()
    files.set(owner, own)
    return own
  }

  return {
    /** Finds what is there: other engines of the model save too, and the caches delete. */
    async read(): Promise<void> {
      const found: typeof files = new Map()
      const owners = await readdir(folder, { withFileTypes: true }).catch(() => [])
      for (const { name: owner } of owners.filter(entry => entry.isDirectory())) {
        const names = await readdir(join(folder, owner)).catch((): string[] => [])
        const own = names.flatMap(name => slotFileOf(name, settings) ?? [])
        if (own.length > 0) found.set(owner, openOwnerFiles(own))
      }
      files = found
    },
    /** The lengths of the prompts of an owner, for `promptMarks`: each takes a few microseconds. */
    lengths: (owner: string): readonly number[] => files.get(owner)?.lengths() ?? [],
    /** The file of an owner that has most of a prompt, and how many bytes of it. */
    longest: (owner: string, prompt: MarkedPrompt): { file: SlotFile; common: number } | undefined =>
      files.get(owner)?.longest(prompt),
    /** The files of an owner whose whole prompts this one begins with: it replaces them. */
    within: (owner: string, prompt: MarkedPrompt): string[] => files.get(owner)?.within(prompt) ?? [],

    /** A name for a file that the engine is to write. */
    newName: (): string => `${randomUUID()}.part`,

    /**
     * Moves what the engine has written to its owner, if it has at most `maxBytes`. Resolves with its file; undefined if it
     * was not kept, as when nothing is kept of the owner any more. The written file is gone either way.
     */
    async keep(written: string, owner: string, marks: PromptMarks, maxBytes: number): Promise<SlotFile | undefined> {
      return inFolder(exchange, async pathOf => {
        const from = pathOf(written)
        try {
          await using source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
          const { ino, size } = await source.stat()
          if (!(await source.stat()).isFile() || size > maxBytes) return undefined
          await source.chmod(0o600)
          const name = nameOf(settings, marks, size)
          return await inFolder(join(folder, owner), async ownPathOf => {
            await rename(from, ownPathOf(name))
            // The engine may have put another file in its place.
            if ((await lstat(ownPathOf(name))).ino !== ino) {
              await rm(ownPathOf(name), { force: true })
              return undefined
            }
            const file = { name, bytes: size, marks }
            known(owner).add(file)
            return file
          })
        } catch (thrown) {
          if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined
          throw thrown
        } finally {
          await rm(from, { force: true })
        }
      })
    },

    /**
     * Shows a file to the engine while `restore` runs, which gets its name there. Rejects if the file is gone or has another
     * length: llama.cpp ends the process for one that is too short.
     */
    async lend<Result>(
      owner: string,
      { name, bytes }: SlotFile,
      restore: (name: string) => Promise<Result>,
    ): Promise<Result> {
      const lent = `${randomUUID()}.lent`
      const path = join(exchange, lent)
      try {
        const from = join(folder, owner, name)
        await link(from, path)
        const file = await lstat(path)
        if (!file.isFile() || file.size !== bytes)
          throw new Error(`The file has ${file.size} bytes instead of ${bytes}.`)
        const result = await restore(lent)
        const now = new Date()
        await utimes(from, now, now).catch(() => {})
        return result
      } finally {
        await rm(path, { force: true })
      }
    },

    async remove(owner: string, name: string): Promise<void> {
      files.get(owner)?.remove(name)
      await rm(join(folder, owner, name), { force: true })
    },
  }
}

export type SlotFiles = ReturnType<typeof openSlotFiles>
