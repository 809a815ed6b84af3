import { commonBytes, type MarkedPrompt, type PromptMarks } from './prompt-marks.ts'

/** The content of a slot in a file, with the prompt that it begins with. */
export interface SlotFile {
  name: string
  bytes: number
  marks: PromptMarks
}

/** More saved conversations of one owner are recognized by their beginnings only. */
const maxLengths = 128

/**
 * The saved slots of one owner, found by the hashes of their beginnings: a search costs the same however many there are.
 * At most a dozen entries for each file.
 */
export function openOwnerFiles(files: readonly SlotFile[] = []) {
  const byName = new Map<string, SlotFile>()
  /** By the hash of the whole prompt, and by those of its marked beginnings. The engine compares the tokens themselves. */
  const ends = new Map<string, Set<SlotFile>>()
  const beginnings = new Map<string, Set<SlotFile>>()
  let lengths: readonly number[] | undefined

  function remove(name: string): void {
    const file = byName.get(name)
    if (!file) return
    byName.delete(name)
    lengths = undefined
    const { end, powers } = file.marks
    drop(ends, end, file)
    for (const hash of powers) drop(beginnings, hash, file)
  }

  function add(file: SlotFile): void {
    remove(file.name)
    byName.set(file.name, file)
    lengths = undefined
    const { length, end, powers } = file.marks
    if (length > 0) put(ends, end, file)
    for (const hash of powers) put(beginnings, hash, file)
  }

  for (const file of files) add(file)
  return {
    add,
    remove,
    /** The lengths of the latest prompts, for `promptMarks`: each takes a few microseconds. */
    lengths: (): readonly number[] =>
      (lengths ??= [...byName.values()].slice(-maxLengths).map(({ marks }) => marks.length)),
    /** The file that has most of a prompt, and how many bytes of it. */
    longest(prompt: MarkedPrompt): { file: SlotFile; common: number } | undefined {
      // The longest beginning first: whatever has it has most.
      for (const [, hash] of Array.from(prompt.at).reverse())
        for (const same of [ends.get(hash), beginnings.get(hash)]) {
          const [file] = same ?? []
          const common = file ? commonBytes(prompt, file.marks) : 0
          if (common > 0) return { file: file!, common }
        }
      return undefined
    },
    /** The names of the files whose whole prompts this one begins with. */
    within(prompt: MarkedPrompt): string[] {
      const names: string[] = []
      for (const [length, hash] of prompt.at)
        for (const { name, marks } of ends.get(hash) ?? []) if (marks.length === length) names.push(name)
      return names
    },
  }
}

function put(index: Map<string, Set<SlotFile>>, hash: string, file: SlotFile): void {
  const same = index.get(hash)
  if (same) same.add(file)
  else index.set(hash, new Set([file]))
}

function drop(index: Map<string, Set<SlotFile>>, hash: string, file: SlotFile): void {
  const same = index.get(hash)
  same?.delete(file)
  if (same?.size === 0) index.delete(hash)
}
