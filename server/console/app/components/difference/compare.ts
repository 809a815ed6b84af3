/** A part of two texts: of both, or of one of them. */
export interface ComparedPart {
  kind: 'same' | 'added' | 'removed'
  text: string
}

/** Parts more than this on either side are compared as a whole: the table grows with the product. */
const maxLines = 3_000
const maxWords = 1_500

/** The lines of two texts with what was added and removed: the longest common sequence stays. */
export const compareLines = (before: string, after: string): ComparedPart[] =>
  compareParts(linesOf(before), linesOf(after), maxLines) ?? [
    ...linesOf(before).map(removed),
    ...linesOf(after).map(added),
  ]

const linesOf = (text: string): string[] => text.replace(/\n$/, '').split('\n')

const same = (text: string): ComparedPart => ({ kind: 'same', text })
const removed = (text: string): ComparedPart => ({ kind: 'removed', text })
const added = (text: string): ComparedPart => ({ kind: 'added', text })

/** The parts of two lists in order; undefined if more than `max` of them differ. */
function compareParts(a: readonly string[], b: readonly string[], max: number): ComparedPart[] | undefined {
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  const [removable, addable] = [a.slice(start, a.length - end), b.slice(start, b.length - end)]
  if (removable.length > max || addable.length > max) return undefined
  return [...a.slice(0, start).map(same), ...compareMiddle(removable, addable), ...a.slice(a.length - end).map(same)]
}

function compareMiddle(a: readonly string[], b: readonly string[]): ComparedPart[] {
  // lengths[i][j]: length of the longest common sequence of a from i and b from j.
  const width = b.length + 1
  const lengths = new Uint16Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        a[i] === b[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!)
  const parts: ComparedPart[] = []
  let [i, j] = [0, 0]
  while (i < a.length && j < b.length)
    if (a[i] === b[j]) {
      parts.push(same(a[i]!))
      i++
      j++
    } else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) parts.push(removed(a[i++]!))
    else parts.push(added(b[j++]!))
  return [...parts, ...a.slice(i).map(removed), ...b.slice(j).map(added)]
}

/** Groups of lines to show: changes with three lines around them, and how many are left out between. */
export function shownLines(lines: readonly ComparedPart[], around = 3): (ComparedPart | number)[] {
  const near = new Uint8Array(lines.length)
  for (const [at, { kind }] of lines.entries())
    if (kind !== 'same') near.fill(1, Math.max(0, at - around), Math.min(lines.length, at + around + 1))
  const shown: (ComparedPart | number)[] = []
  for (const [at, line] of lines.entries()) {
    const last = shown.at(-1)
    if (near[at]) shown.push(line)
    else if (typeof last === 'number') shown[shown.length - 1] = last + 1
    else shown.push(1)
  }
  return shown
}

const words = new Intl.Segmenter('en', { granularity: 'word' })
const wordsOf = (text: string): string[] => Array.from(words.segment(text), ({ segment }) => segment)

/**
 * Two texts as the passages that both have and those that were removed and added, a removed one before the one that
 * replaces it. Undefined if they differ in too many words for that.
 */
export function compareWords(before: string, after: string): ComparedPart[] | undefined {
  const parts = compareParts(wordsOf(before), wordsOf(after), maxWords)
  if (!parts) return undefined
  const passages: ComparedPart[] = []
  /** What was removed and added since the last passage that stays, and the spaces after it. */
  let [gone, come, spaces] = ['', '', '']
  const end = () => {
    if (gone !== '') passages.push(removed(gone))
    if (come !== '') passages.push(added(come))
    if (spaces !== '') passages.push(same(spaces))
    gone = come = spaces = ''
  }
  for (const { kind, text } of parts) {
    const isChanged = gone !== '' || come !== ''
    if (kind === 'same' && isChanged && text.trim() === '') spaces += text
    else if (kind === 'same') {
      end()
      const last = passages.at(-1)
      if (last?.kind === 'same') last.text += text
      else passages.push(same(text))
    } else {
      // Words in a row that all differ are one passage, with the spaces between them.
      if (isChanged) [gone, come] = [gone + spaces, come + spaces]
      spaces = ''
      if (kind === 'removed') gone += text
      else come += text
    }
  }
  end()
  return passages
}

/** The passages to show: of long ones that did not change only the ends, and how many characters are left out between. */
export function shownPassages(passages: readonly ComparedPart[], around = 120): (ComparedPart | number)[] {
  return passages.flatMap((passage, at): (ComparedPart | number)[] => {
    const { kind, text } = passage
    const head = at === 0 ? 0 : around
    const tail = at === passages.length - 1 ? 0 : around
    // A few characters take no less space than their number.
    if (kind !== 'same' || text.length <= head + tail + around) return [passage]
    const ends = [text.slice(0, head), text.length - head - tail, text.slice(text.length - tail)]
    return ends.flatMap(part => (typeof part === 'number' ? part : part === '' ? [] : same(part)))
  })
}
