interface ComparedLine {
  kind: 'same' | 'added' | 'removed'
  text: string
}

/** Lines more than this on either side are compared as a whole: the table grows with the product. */
const maxLines = 3_000

/** The lines of two texts with what was added and removed: the longest common sequence stays. */
export function compareLines(before: string, after: string): ComparedLine[] {
  const a = before.replace(/\n$/, '').split('\n')
  const b = after.replace(/\n$/, '').split('\n')
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  const same = (text: string): ComparedLine => ({ kind: 'same', text })
  return [
    ...a.slice(0, start).map(same),
    ...compareMiddle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(same),
  ]
}

function compareMiddle(a: readonly string[], b: readonly string[]): ComparedLine[] {
  const removed = (text: string): ComparedLine => ({ kind: 'removed', text })
  const added = (text: string): ComparedLine => ({ kind: 'added', text })
  if (a.length > maxLines || b.length > maxLines) return [...a.map(removed), ...b.map(added)]
  // lengths[i][j]: length of the longest common sequence of a from i and b from j.
  const width = b.length + 1
  const lengths = new Uint16Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        a[i] === b[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!)
  const lines: ComparedLine[] = []
  let [i, j] = [0, 0]
  while (i < a.length && j < b.length)
    if (a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i]! })
      i++
      j++
    } else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) lines.push(removed(a[i++]!))
    else lines.push(added(b[j++]!))
  return [...lines, ...a.slice(i).map(removed), ...b.slice(j).map(added)]
}

/** Groups of lines to show: changes with three lines around them, and how many are left out between. */
export function shownLines(lines: readonly ComparedLine[], around = 3): (ComparedLine | number)[] {
  const near = new Uint8Array(lines.length)
  for (const [at, { kind }] of lines.entries())
    if (kind !== 'same') near.fill(1, Math.max(0, at - around), Math.min(lines.length, at + around + 1))
  const shown: (ComparedLine | number)[] = []
  for (const [at, line] of lines.entries()) {
    const last = shown.at(-1)
    if (near[at]) shown.push(line)
    else if (typeof last === 'number') shown[shown.length - 1] = last + 1
    else shown.push(1)
  }
  return shown
}
