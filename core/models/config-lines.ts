import type { ConfigLines } from './model-administration.ts'

/** Returns the lines that differ between two versions of a text, without those that both begin and end with. */
export function configLines(before: string, after: string): ConfigLines {
  const [old, next] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < old.length && start < next.length && old[start] === next[start]) start++
  let end = 0
  while (end < old.length - start && end < next.length - start && old.at(-1 - end) === next.at(-1 - end)) end++
  return { added: next.slice(start, next.length - end), removed: old.slice(start, old.length - end) }
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))
